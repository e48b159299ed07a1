package result

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/measure"
	"replayd/internal/records"
)

// CollectorOptions say what a Collector keeps.
type CollectorOptions struct {
	Path      string // of profile_export.jsonl; "": no file
	Gaps      bool   // keep the gaps between chunks, in memory and in the file: one number per chunk
	Processor string // record_processor_id, the same for all requests of this process
	Log       *slog.Logger
}

const rowsAtOnce = 1 << 13

// A Collector keeps the requests of a run in memory and writes each to profile_export.jsonl within a second of its end.
// Methods may be called concurrently. Memory holds at most 2^20 requests of some 500 bytes and 2^24 gaps of 8 bytes.
// Everything beyond that is only in the file, and the Run says how much. The file takes lines as records.Sink does: no
// request waits for a disk, lines are whole, and after a crash all lines written before are there.
type Collector struct {
	options  CollectorOptions
	settings Settings
	sink     *records.Sink
	most     int // maximum number of rows

	mu       sync.Mutex
	clock    wallClock
	rows     [][]Row           // of rowsAtOnce rows each: growing one slice would copy hundreds of MB while lanes wait
	kept     int               // in rows
	extra    int               // requests that are not in rows
	gaps     int               // in rows
	gapless  int               // rows whose gaps are not kept
	ended    []measure.Session // at most as many as rows
	more     int               // ended sessions that are not in ended
	sessions numbering
}

// NewCollector returns an empty collector. It fails if the file cannot be opened.
func NewCollector(s Settings, o CollectorOptions) (*Collector, error) {
	lost := prometheus.NewCounter(prometheus.CounterOpts{Name: "lost"}) // not exported: the Run reports lost lines
	c := &Collector{options: o, settings: s, sink: records.NewSink(lost, o.Log), most: maxRows}
	if err := c.sink.Use(records.Options{Path: o.Path}); err != nil {
		return nil, err
	}
	return c, nil
}

// Run writes the file until ctx is cancelled, and then the rest. No request may finish after that. The error says why
// lines were lost at the end.
func (c *Collector) Run(ctx context.Context) error { return c.sink.Run(ctx) }

// Observe adds a finished request. It keeps nothing of r.
func (c *Collector) Observe(r *measure.Request) {
	row := c.add(r)
	if c.options.Path == "" {
		return
	}
	line := AppendExport(nil, row) // outside the sink's lock
	c.sink.Append(func(b []byte) []byte { return append(b, line...) })
}

// Session adds a session that has ended.
func (c *Collector) Session(s *measure.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ended) >= c.most {
		c.more++
		return
	}
	c.ended = append(c.ended, *s)
}

func (c *Collector) add(r *measure.Request) Row {
	c.mu.Lock()
	defer c.mu.Unlock()
	row := c.clock.row(r, c.options.Processor, c.options.Gaps)
	conversation := row.Correlation
	if row.Conversation == "" {
		conversation = "" // a request alone
	}
	row.Session = c.sessions.of(row.Phase, conversation, c.most)
	if c.kept >= c.most {
		c.extra++
		return row
	}
	kept := row
	if c.gaps+len(row.Gaps) > maxGaps {
		kept.Gaps = nil
		c.gapless++
	}
	c.gaps += len(kept.Gaps)
	if n := len(c.rows); n == 0 || len(c.rows[n-1]) == rowsAtOnce {
		c.rows = append(c.rows, make([]Row, 0, rowsAtOnce))
	}
	last := &c.rows[len(c.rows)-1]
	*last = append(*last, kept)
	c.kept++
	return row
}

// Collected returns the run so far, without a ledger: the workload has the ledger.
func (c *Collector) Collected() Run {
	c.mu.Lock()
	defer c.mu.Unlock()
	run := Run{Settings: c.settings, Rows: slices.Concat(c.rows...), Sessions: slices.Clone(c.ended)}
	inOrder(run.Rows)
	lost := int(c.sink.Lost())
	run.lacks(c.more, "%d sessions after the first %d are not in these figures", c.more, c.most)
	run.lacks(c.extra, "%d requests after the first %d are not in these figures", c.extra, c.most)
	run.lacks(c.gapless, "the gaps between chunks of %d requests are not in these figures", c.gapless)
	run.lacks(lost, "%s: %d lines could not be written", c.options.Path, lost)
	return run
}
