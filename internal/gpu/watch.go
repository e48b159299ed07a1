package gpu

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/scarce"
	"replayd/internal/scrape"
	"replayd/internal/secret"
)

const (
	missedLimit = 3 // consecutive failed readings after which the latest figures are removed from the page
	maxBackoff  = time.Minute
)

// WatchOptions configures a Watch. All fields are required unless their comment says otherwise.
type WatchOptions struct {
	Target  string // value of the target label
	Source  Source // the Watch closes it
	Kind    string // SourceExporter, SourceSMI or SourceDCGM
	Address string // address of the source: host:port or a path
	Select  Select // zero: all devices of the source

	Interval time.Duration // reading interval
	Log      *slog.Logger
}

// A Watch reads one source of one target periodically and exports its figures through the Collector.
type Watch struct {
	o         WatchOptions
	collector *Collector

	mu    sync.Mutex
	state state

	dropped atomic.Int64 // devices that another source exports
}

// A state is the result of the latest readings. It is replaced as a whole.
type state struct {
	read     bool      // this watch has read the source at least once
	missed   int       // consecutive failed readings
	unread   int       // consecutive readings that were not made, because this process lacked a resource
	at       time.Time // time of the latest figures; zero: none yet
	duration time.Duration
	sampled  time.Time   // when the newest of them was sampled; zero: the source does not say
	err      error       // of the latest reading; nil: it succeeded
	bad      int         // samples of the latest reading that were left out
	first    secret.Text // why the first of them was; "": none was
	figures  []figure    // of the latest successful reading; nil after missedLimit failures in a row
}

// A figure holds all series of a device.
type figure struct {
	device identity
	series []*scrape.Series
}

// NewWatch returns a watch. The collector exports it from Show until Run or Close returns.
func NewWatch(c *Collector, o WatchOptions) *Watch {
	for _, label := range []*string{&o.Target, &o.Kind, &o.Address} {
		*label = strings.ToValidUTF8(*label, "?") // an invalid UTF-8 label fails the whole scrape
	}
	o.Log = o.Log.With("target", o.Target, "kind", o.Kind, "address", o.Address) // "source" is the log's own
	return &Watch{o: o, collector: c}
}

// Show exports the watch before Run starts. Do not call it after Run or Close.
func (w *Watch) Show() { w.collector.show(w) }

// Run reads the source at scheduled times that are whole intervals apart, until ctx is done, and then closes the
// source. Scheduled times that pass during a reading are skipped. After three failures in a row the pause doubles with
// each failure, up to one minute or one interval, whichever is longer.
func (w *Watch) Run(ctx context.Context) error {
	w.Show()
	defer w.collector.hide(w)
	scrape.Every(ctx, w.o.Interval, func() time.Duration {
		w.read(ctx)
		return w.pause()
	})
	return w.o.Source.Close()
}

// Close hides the watch and closes the source. It is for a Watch whose Run is never called.
func (w *Watch) Close() error {
	w.collector.hide(w)
	return w.o.Source.Close()
}

// pause returns the time from one scheduled reading to the next, a whole number of intervals.
func (w *Watch) pause() time.Duration {
	pause := w.o.Interval
	for n := missedLimit; n <= w.now().missed && pause*2 <= maxBackoff; n++ {
		pause *= 2
	}
	return pause
}

// read reads the source once. The timeout is three quarters of the interval, so a hanging source fails every reading and
// not every second one.
func (w *Watch) read(ctx context.Context) {
	at := time.Now()
	within, cancel := context.WithTimeout(ctx, w.o.Interval*3/4)
	defer cancel()
	r, err := w.o.Source.Read(within)
	if ctx.Err() != nil {
		return // shutdown is not a failure of the source
	}
	before := w.now()
	now := before
	if scarce.Met(err) { // the source has no part in it: it stays as up or down as it was seen last
		if now.unread++; now.unread >= missedLimit {
			now.figures = nil
		}
		w.put(now)
		if now.unread == 1 {
			w.o.Log.Error("GPUs are not read: replayd itself lacks a resource", "err", err)
		}
		return
	}
	var devices []Device
	if err == nil {
		devices, err = w.o.Select.choose(r.Devices)
	}
	now.read, now.err, now.duration, now.unread = true, err, time.Since(at), 0
	now.bad, now.first = r.Bad, r.first
	if err == nil {
		now.missed, now.at, now.sampled = 0, time.Now(), r.Sampled
		now.figures = show(w.o.Target, w.collector.place(w, devices))
	} else if now.missed++; now.missed >= missedLimit {
		now.figures = nil
	}
	w.collector.count(w, &now)
	w.put(now)
	w.tell(&before, &now)
}

// tell logs the changes between two states.
func (w *Watch) tell(before, now *state) {
	switch {
	case now.err != nil && (before.err == nil || !before.read):
		w.o.Log.Warn("GPUs cannot be read", "err", now.err)
	case now.err == nil && !before.read:
		w.o.Log.Info("GPUs found", "devices", len(now.figures))
	case now.err == nil && before.err != nil:
		w.o.Log.Info("GPUs are read again", "devices", len(now.figures))
	case now.err == nil && len(before.figures) != len(now.figures):
		w.o.Log.Warn("the number of GPUs has changed", "previous", len(before.figures), "devices", len(now.figures))
	}
	if now.first != "" && before.first == "" {
		w.o.Log.Warn("samples of the GPUs cannot be used: they are left out", "samples", now.bad, "first", now.first)
	}
}

// newest returns when the newest figure was sampled, or was read. The source's clock may be ahead.
func (s *state) newest() time.Time {
	if s.sampled.IsZero() || s.sampled.After(s.at) {
		return s.at
	}
	return s.sampled
}

// up reports whether the latest reading succeeded.
func (s *state) up() bool { return s.missed == 0 && !s.at.IsZero() }

func (w *Watch) now() state {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

func (w *Watch) put(s state) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = s
}
