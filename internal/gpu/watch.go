package gpu

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/scrape"
)

const (
	missedLimit = 3 // readings in a row without figures after which the last ones leave the page
	maxBackoff  = time.Minute
)

// WatchOptions of a Watch. All are needed, but for those that say otherwise.
type WatchOptions struct {
	Target  string // whose GPUs they are
	Source  Source // the Watch closes it
	Kind    string // SourceExporter, SourceSMI or SourceDCGM
	Address string // where the source is: host:port, a path
	Select  Select // zero: all that the source sees

	Interval time.Duration // from one reading to the next
	Timeout  time.Duration // of a reading, at most the interval; 0: three quarters of it
	Log      *slog.Logger
}

// A Watch reads one source again and again, for one target, and has the Collector show it.
type Watch struct {
	o         WatchOptions
	collector *Collector

	mu    sync.Mutex
	state state

	dropped atomic.Int64 // devices that another source shows
}

// A state is what is known of a source. It is put in place whole.
type state struct {
	read     bool      // at least once, by this watch
	missed   int       // readings in a row without figures
	at       time.Time // when the latest figures were there; zero: none ever were
	duration time.Duration
	err      error    // of the latest reading; nil: it gave figures
	figures  []figure // of the latest reading that had any; nil again after the third without
}

// A figure is everything that the page shows of a device.
type figure struct {
	device  identity
	metrics []prometheus.Metric
}

// NewWatch makes a watch that the collector shows from its Show until its Run or Close returns.
func NewWatch(c *Collector, o WatchOptions) *Watch {
	for _, label := range []*string{&o.Target, &o.Kind, &o.Address} {
		*label = strings.ToValidUTF8(*label, "?") // any other label fails the whole page
	}
	if o.Timeout <= 0 {
		o.Timeout = o.Interval * 3 / 4 // a source that hangs is read each interval, then, not every other
	}
	o.Timeout = min(o.Timeout, o.Interval)
	o.Log = o.Log.With("target", o.Target, "source", o.Kind, "address", o.Address)
	return &Watch{o: o, collector: c}
}

// Show has the collector show the watch from now on, rather than from an instant at which Run has begun. Not after Run or
// Close.
func (w *Watch) Show() { w.collector.show(w) }

// Run reads at instants that are whole intervals apart, until ctx is done, and closes the source. A reading that takes
// longer loses the instants that it covers. A source that is lost is read again, after three times less and less often,
// but once a minute at least, or once an interval.
func (w *Watch) Run(ctx context.Context) error {
	w.Show()
	defer w.collector.hide(w)
	scrape.Every(ctx, w.o.Interval, func() time.Duration {
		w.read(ctx)
		return w.pause()
	})
	return w.o.Source.Close()
}

// Close is for a Watch that never runs: it hides it where it was shown, and closes the source.
func (w *Watch) Close() error {
	w.collector.hide(w)
	return w.o.Source.Close()
}

// pause is the time from one due instant to the next, a whole number of intervals.
func (w *Watch) pause() time.Duration {
	pause := w.o.Interval
	for n := missedLimit; n <= w.now().missed && pause*2 <= maxBackoff; n++ {
		pause *= 2
	}
	return pause
}

// read reads the source once.
func (w *Watch) read(ctx context.Context) {
	at := time.Now()
	within, cancel := context.WithTimeout(ctx, w.o.Timeout)
	defer cancel()
	devices, err := w.o.Source.Read(within)
	if ctx.Err() != nil {
		return // the watch ends, which is no fault of the source's
	}
	if err == nil {
		devices, err = w.o.Select.choose(devices)
	}
	before := w.now()
	now := before
	now.read, now.err, now.duration = true, err, time.Since(at)
	if err == nil {
		now.missed, now.at, now.figures = 0, time.Now(), show(w.o.Target, devices)
	} else {
		w.collector.failed(w)
		if now.missed++; now.missed >= missedLimit {
			now.figures = nil
		}
	}
	w.put(now)
	w.tell(&before, &now)
}

// tell logs what changed.
func (w *Watch) tell(before, now *state) {
	switch {
	case now.err != nil && (before.err == nil || !before.read):
		w.o.Log.Warn("GPUs cannot be read", "err", now.err)
	case now.err == nil && !before.read:
		w.o.Log.Info("GPUs are read", "devices", len(now.figures))
	case now.err == nil && before.err != nil:
		w.o.Log.Info("GPUs are read again", "devices", len(now.figures))
	case now.err == nil && len(before.figures) != len(now.figures):
		w.o.Log.Warn("the number of GPUs has changed", "before", len(before.figures), "devices", len(now.figures))
	}
}

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
