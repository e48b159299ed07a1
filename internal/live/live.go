// Package live serves a page that shows what replayd does now and did in the last ten minutes. It takes finished
// requests, asks each workload for its state once a second, and sends the changes to all viewers.
package live

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"replayd/internal/comparison"
	"replayd/internal/number"
	"replayd/internal/scrape"
)

const keptNotes = 50

// Options are the options of a Board.
type Options struct {
	Version string

	// Engines and GPUs return what these reported last. Run's goroutine calls them, only while somebody watches. nil:
	// nothing is known.
	Engines, GPUs func() []scrape.Values

	// Comparisons returns the state of all comparisons. Run's goroutine calls it once a second. nil: there are none.
	Comparisons func() []comparison.Status
}

// A Board is the page and its content. Its methods are safe for concurrent use.
type Board struct {
	options Options
	build   string // identifies the page's files of this binary

	// For the goroutine of Run alone.
	serversOf int                        // slot in which servers was read
	prefixes  map[string][]prefixReading // the latest of each target, the oldest first

	mu        sync.Mutex
	servers   map[string]number.Object // by target; nil while nobody watches
	compared  []compared               // of the last tick
	workloads []*Workload              // in the order in which they came
	notes     []note                   // the last ones, the oldest first
	noted     bool                     // there are new notes since the last tick
	renewed   bool                     // workloads came or went since the last tick
	now       time.Time                // of the last tick
	full      []byte                   // the whole page as JSON, made on demand and at most once a tick; nil until then
	viewers   map[*viewer]struct{}
	joined    int  // viewers so far
	over      bool // Run has ended
	watching  sync.WaitGroup
}

// New returns an empty Board.
func New(o Options) *Board {
	return &Board{
		options: o, build: digestOfFiles(), viewers: map[*viewer]struct{}{}, prefixes: map[string][]prefixReading{},
	}
}

type note struct {
	At    instant `json:"at"`
	Level string  `json:"level"`
	Text  string  `json:"text"`
}

// Note adds an event of the process to the page, such as a reload or a step of the clock. The page knows the levels
// from info to error. It keeps the last 50 events and cuts a text to 240 bytes.
func (b *Board) Note(at time.Time, level slog.Level, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes = append(b.notes, note{instant(at), strings.ToLower(level.String()), cut(text, noteBytes)})
	b.notes = append(b.notes[:0], b.notes[max(0, len(b.notes)-keptNotes):]...)
	b.noted, b.full = true, nil
}

// changed marks the whole page as changed for all viewers. The caller holds the lock.
func (b *Board) changed() { b.renewed, b.full = true, nil }

// Run updates the page once a second. When ctx ends, Run ends all streams, waits for them and returns nil.
func (b *Board) Run(ctx context.Context) error {
	ticker := time.Tick(second)
	start := time.Now()
	for {
		now := time.Now()
		b.tick(now, int(now.Sub(start)/slotTime))
		select {
		case <-ctx.Done():
			b.end()
			return nil
		case <-ticker:
		}
	}
}

// tick asks every workload for its state, records it in the given slot, and sends the changes.
func (b *Board) tick(now time.Time, slot int) {
	b.mu.Lock()
	asked, watched := slices.Clone(b.workloads), len(b.viewers) > 0
	b.mu.Unlock()
	servers := b.readServers(watched, slot)
	comparisons := b.readComparisons()
	states := make(map[*Workload]State, len(asked))
	for _, w := range asked { // without the lock: State may take a lock of the runner
		states[w] = w.options.State()
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	b.now, b.full, b.servers, b.compared = now, nil, servers, comparisons
	rows := make([][]row, len(b.workloads))
	for i, w := range b.workloads {
		if state, ok := states[w]; ok { // otherwise the workload was added meanwhile
			rows[i] = w.tick(now, slot, state)
		}
	}
	if len(b.viewers) > 0 {
		if b.renewed {
			b.send(event("all", b.all()))
		} else {
			b.send(event("news", b.news(rows)))
		}
	}
	b.renewed, b.noted = false, false
}
