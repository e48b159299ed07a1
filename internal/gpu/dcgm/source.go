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

// closePatience is how long Close waits for a hanging call.
const closePatience = 5 * time.Second

// A dcgmSource reads GPUs through nv-hostengine. library, session and buffers belong to the one goroutine that calls
// into the library; Read and Close only wait for that goroutine.
type dcgmSource struct {
	options  Options
	address  address
	name     string // file name of the library; a path in tests
	patience time.Duration

	running *turn                // the latest turn, nil after its result was received
	doing   atomic.Pointer[call] // the current call, for errors about a hanging turn

	library *library
	session *session
	skip    []*gpu.Field // what the next session, if it is opened at once, does not watch
	buffers buffers
	told    map[string]bool     // keys of warnings already logged
	silent  map[entityPair]bool // GPUs without a fresh value at the last Read
}

// A turn is a sequence of calls into the library in its own goroutine, because a call cannot be interrupted.
type turn struct {
	done    chan struct{}
	reading gpu.Reading
	err     error
}

// A call is one call into the library.
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

// startTurn starts a turn. Two turns must not call into the library at once.
func (d *dcgmSource) startTurn(run func() (gpu.Reading, error)) *turn {
	t := &turn{done: make(chan struct{})}
	d.running = t
	go func() {
		defer close(t.done)
		t.reading, t.err = run()
	}()
	return t
}

func (d *dcgmSource) Read(ctx context.Context) (r gpu.Reading, err error) {
	if err := ctx.Err(); err != nil {
		return r, fmt.Errorf("libdcgm: %s: %w", d.address.given, err)
	}
	if d.running != nil {
		select {
		case <-d.running.done: // the turn ended after its Read had timed out
		default:
			return r, fmt.Errorf("libdcgm: %s: still waiting for %s", d.address.given, d.hanging())
		}
	}
	t := d.startTurn(d.read)
	select {
	case <-t.done:
		d.running = nil
		if t.err != nil {
			return t.reading, fmt.Errorf("libdcgm: %s: %w", d.address.given, t.err)
		}
		return t.reading, nil
	case <-ctx.Done():
		return r, fmt.Errorf("libdcgm: %s: no answer to %s: %w", d.address.given, d.hanging(), ctx.Err())
	}
}

// hanging describes the current call and its duration.
func (d *dcgmSource) hanging() string {
	c := d.doing.Load()
	if c == nil {
		return "the library's loading"
	}
	return fmt.Sprintf("the call of %s begun %v ago", c.name, time.Since(c.begun).Round(time.Millisecond))
}

// Close implements Source. If a call hangs, Close returns an error after 5 s; the remaining goroutine disconnects and
// ends when the call returns.
func (d *dcgmSource) Close() error {
	before := d.running
	t := d.startTurn(func() (gpu.Reading, error) {
		if before != nil {
			<-before.done
		}
		return gpu.Reading{}, d.end()
	})
	select {
	case <-t.done:
		return t.err
	case <-time.After(d.patience):
		return fmt.Errorf("libdcgm: %s: left behind at the end: %s", d.address.given, d.hanging())
	}
}

func (d *dcgmSource) read() (r gpu.Reading, err error) {
	if err := d.use(); err != nil {
		return r, err
	}
	if s := d.session; s != nil && s.due() {
		if s.changed() {
			d.leave()
		} else if err := s.watchRefused(); err != nil {
			d.leave()
			return r, err
		}
	}
	if d.session == nil {
		s := &session{dcgmSource: d, skipped: d.skip, given: map[*gpu.Field]bool{}}
		d.session, d.skip = s, nil
		if err := s.open(); err != nil {
			err = d.versions(err)
			d.leave()
			return r, err
		}
	}
	r, err = d.session.read()
	if err != nil {
		err = d.versions(err)
		// Reconnect after any error: ids are valid only for one connection and one run of the engine, and the library
		// does not repair a connection.
		d.leave()
	} else if skip := d.session.mute(); skip != nil { // a field group cannot be changed
		d.leave()
		d.skip = skip
	}
	return r, err
}

// use loads and initializes the library on the first call.
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
	d.library = l
	if l.users == 0 {
		if err := d.call("dcgmInit", l.Start); err != nil {
			d.library = nil
			return err
		}
	}
	l.users++
	return nil
}

// leave disconnects. The engine then drops the groups, field groups and watches of the connection (OnConnectionRemove
// in DcgmHostEngineHandler.cpp).
func (d *dcgmSource) leave() {
	s := d.session
	d.session = nil
	if s == nil || s.handle == 0 {
		return
	}
	if err := d.call("dcgmDisconnect", func() int32 { return s.library.Disconnect(s.handle) }); err != nil {
		d.options.Log.Debug("libdcgm: disconnecting", "address", d.address.given, "err", err)
	}
}

// end is the turn of Close. The last source to end shuts down the library and its threads.
func (d *dcgmSource) end() error {
	d.leave()
	l := d.library
	if l == nil {
		return nil
	}
	defer func() { d.library = nil }()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users > 0 {
		return nil
	}
	return d.call("dcgmShutdown", l.Stop)
}

// call runs one function of the library and records it for hanging.
func (d *dcgmSource) call(name string, function func() int32) error {
	d.doing.Store(&call{name, time.Now()})
	code := function()
	if code == stOK {
		return nil
	}
	words := string(gpu.Label(d.library.ErrorString(code)))
	if words == "" {
		words = "a code that the library has no words for"
	}
	return &dcgmError{name, code, words}
}

// once logs a warning once per source and key.
func (d *dcgmSource) once(key, message string, args ...any) {
	if d.told[key] {
		return
	}
	d.told[key] = true
	d.options.Log.Warn("libdcgm: "+message, append([]any{"address", d.address.given}, args...)...)
}
