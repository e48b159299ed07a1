package daemon

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"replayd/internal/comparison"
	"replayd/internal/config"
	"replayd/internal/gpu"
	"replayd/internal/live"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/replay"
	"replayd/internal/scrape"
	"replayd/internal/synth"
)

// Options of a Generation. All except the configuration are the same for every generation of a process.
type Options struct {
	Config  config.Config
	Meter   *metrics.Meter
	Board   *live.Board       // nil: there is no live page
	Engines *scrape.Collector // nil: no engine is scraped
	Routers *scrape.Collector // nil: no router is scraped
	GPUs    *gpu.Collector    // nil: no GPU is read

	Comparisons *comparison.Collector // shows the comparisons; nil: nothing shows them
	comparison.Listeners

	UserAgent string
	Log       *slog.Logger
	Stdin     io.Reader // read as the trace "-"

	// All of them may be nil. Session must not block.
	Observers  []replay.Observer
	Warmed     []replay.Observer                                  // observe warm-up requests, which Observers do not
	Session    func(*measure.Session)                             // called with every session that has ended
	Saved      func(replay.Sent)                                  // called with every request that was written
	Reuse      *synth.Reuse                                       // counts the tokens that prompts share
	Clipped    *atomic.Int64                                      // counts requests that were clipped
	LogFailure func(workload, what string, n int, id, err string) // called with failed and dropped requests

	BeforeFirst func(ctx context.Context) // called before a plan without an epoch begins, which waits for its return

	// Patient keeps workloads alive after faults that can pass: a trace that has changed is read again, and workloads
	// wait for a target that lists several models. Without it these are errors.
	Patient bool

	// Failed is called with the error that ended a workload early: a trace that changed while it was read, a target
	// that cannot be used. The other workloads go on.
	Failed func(error)

	Virtual

	watchdog *watchdog // nil: the generation makes one
}

// Virtual replaces connections, sleeps and clocks, for tests in virtual time.
type Virtual struct {
	Dial    func(ctx context.Context, network, address string) (net.Conn, error) // nil: TCP
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)         // nil: the system's resolver
	Sleeper func() replay.Sleeper                                                // nil: the most exact one
	Wall    func() time.Time                                                     // the wall clock; nil: time.Now
	Within  time.Duration                                                        // see within; 0: 5 s
}

// within is the longest wait for a workload or a comparison that is changed.
func (o *Options) within() time.Duration { return cmp.Or(o.Within, changeWithin) }

func (o *Options) sleeper() (replay.Sleeper, error) {
	if o.Sleeper != nil {
		return o.Sleeper(), nil
	}
	return replay.NewSleeper()
}

// note adds an event to the live page.
func (o *Options) note(level slog.Level, text string) {
	if o.Board != nil {
		o.Board.Note(time.Now(), level, text)
	}
}

// dropped logs n requests that were due and not sent. Filtered ones are configured, and not logged.
func (o *Options) dropped(workload string, why measure.DropReason, n int) {
	if o.LogFailure != nil && why != measure.Filtered {
		o.LogFailure(workload, "dropped: "+string(why), n, "", "")
	}
}
