//go:build dcgm && linux && (amd64 || arm64)

package dcgm

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"replayd/internal/gpu"
)

// closePatience is how long Close waits for a call that hangs.
const closePatience = 5 * time.Second

// A dcgmSource reads GPUs through nv-hostengine. What it holds of the library, session and tables, belongs to the one
// goroutine that runs calls; Read and Close only wait for it.
type dcgmSource struct {
	options  Options
	address  address
	name     string // of the library; a path in tests
	patience time.Duration

	running *turn                // the last begun, until its end was seen
	doing   atomic.Pointer[call] // what a turn that does not end hangs in

	library *library
	session *session
	buffers buffers
	told    map[string]bool     // what was logged, and is not again
	silent  map[entityPair]bool // GPUs without a value of the present at the last Read
}

// A turn is a run of calls into the library, in a goroutine of its own: a call cannot be cut short.
type turn struct {
	done    chan struct{}
	devices []gpu.Device
	err     error
}

// A call is one into the library.
type call struct {
	name  string
	begun time.Time
}

func open(o Options, address address) (gpu.Source, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &dcgmSource{
		options: o, address: address, name: dcgmLibrary, patience: closePatience,
		told: map[string]bool{}, silent: map[entityPair]bool{},
	}, nil
}

// startTurn starts a turn. One that went before must have ended.
func (d *dcgmSource) startTurn(run func() ([]gpu.Device, error)) *turn {
	t := &turn{done: make(chan struct{})}
	d.running = t
	go func() {
		defer close(t.done)
		t.devices, t.err = run()
	}()
	return t
}

// Read implements Source.
func (d *dcgmSource) Read(ctx context.Context) ([]gpu.Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("libdcgm: %s: %w", d.address.given, err)
	}
	if d.running != nil {
		select {
		case <-d.running.done: // later than its Read waited
		default:
			return nil, fmt.Errorf("libdcgm: %s: still waiting for %s", d.address.given, d.hanging())
		}
	}
	t := d.startTurn(d.read)
	select {
	case <-t.done:
		d.running = nil
		if t.err != nil {
			return nil, fmt.Errorf("libdcgm: %s: %w", d.address.given, t.err)
		}
		return t.devices, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("libdcgm: %s: no answer to %s: %w", d.address.given, d.hanging(), ctx.Err())
	}
}

// hanging says which call is under way, and for how long.
func (d *dcgmSource) hanging() string {
	c := d.doing.Load()
	if c == nil {
		return "the library's loading"
	}
	return fmt.Sprintf("the call of %s begun %v ago", c.name, time.Since(c.begun).Round(time.Millisecond))
}

// Close implements Source. Where a call hangs it waits for 5 s and gives an error; the goroutine that is left then ends,
// and disconnects, when the call comes back.
func (d *dcgmSource) Close() error {
	before := d.running
	t := d.startTurn(func() ([]gpu.Device, error) {
		if before != nil {
			<-before.done
		}
		return nil, d.end()
	})
	timer := time.NewTimer(d.patience)
	defer timer.Stop()
	select {
	case <-t.done:
		return t.err
	case <-timer.C:
		return fmt.Errorf("libdcgm: %s: left behind at the end: %s", d.address.given, d.hanging())
	}
}

// read is a Read's turn.
func (d *dcgmSource) read() ([]gpu.Device, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	if s := d.session; s != nil && s.due() {
		if s.changed() {
			d.leave()
		} else if err := s.watchRefused(); err != nil {
			d.leave()
			return nil, err
		}
	}
	if d.session == nil {
		s := &session{dcgmSource: d, lib: d.library}
		d.session = s
		if err := s.open(); err != nil {
			err = d.versions(err)
			d.leave()
			return nil, err
		}
	}
	devices, err := d.session.read()
	if err != nil {
		err = d.versions(err)
		// Whatever it was: ids hold for one connection with one life of the engine, and the library never mends one.
		d.leave()
	}
	return devices, err
}

// use loads and starts the library, unless that is done.
func (d *dcgmSource) use() error {
	if d.library != nil {
		return nil
	}
	l, err := load(d.name)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users == 0 {
		if err := d.call(l, "dcgmInit", func() int32 { return l.start() }); err != nil {
			return err
		}
	}
	l.users++
	d.library = l
	return nil
}

// leave ends the connection. The engine then drops what was made over it: groups, field groups, watches
// (OnConnectionRemove in DcgmHostEngineHandler.cpp).
func (d *dcgmSource) leave() {
	s := d.session
	d.session = nil
	if s == nil || s.handle == 0 {
		return
	}
	if err := d.call(s.lib, "dcgmDisconnect", func() int32 { return s.lib.disconnect(s.handle) }); err != nil {
		d.options.Log.Debug("libdcgm: disconnecting", "address", d.address.given, "err", err)
	}
}

// end is Close's turn. The last source to end stops the library, and with it its threads.
func (d *dcgmSource) end() error {
	d.leave()
	l := d.library
	if l == nil {
		return nil
	}
	d.library = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users--
	if l.users > 0 {
		return nil
	}
	return d.call(l, "dcgmShutdown", func() int32 { return l.stop() })
}

// call runs one function of the library, and says meanwhile that it does.
func (d *dcgmSource) call(l *library, name string, function func() int32) error {
	d.doing.Store(&call{name, time.Now()})
	code := function()
	if code == stOK {
		return nil
	}
	words := l.errorString(code)
	if words == "" {
		words = "a code that the library has no words for"
	}
	return &dcgmError{name, code, words}
}

// once logs what needs saying one time in a source's life.
func (d *dcgmSource) once(key, message string, args ...any) {
	if d.told[key] {
		return
	}
	d.told[key] = true
	d.options.Log.Warn("libdcgm: "+message, append([]any{"address", d.address.given}, args...)...)
}
