// Package live is the page that shows what replayd does now and did in the last ten minutes. It is fed with finished
// requests, asks each workload once a second how it stands, and sends what changed to everybody who watches.
package live

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// keptNotes is how many of the last events of the process are shown.
const keptNotes = 50

// Options of a Board.
type Options struct {
	Version string
}

// A Board is the page and all that is on it. Its methods may be called from several goroutines at once.
type Board struct {
	version string
	files   map[string]file
	build   string // tells the files of this binary from those of another

	mu        sync.Mutex
	workloads []*Workload // in the order in which they came
	notes     []note      // the last ones, the oldest first
	noted     bool        // there are new ones since the last tick
	renewed   bool        // workloads came or went since the last tick
	now       time.Time   // of the last tick
	full      []byte      // all of the page as JSON, made on demand, once a tick at most; nil until then
	viewers   map[*viewer]struct{}
	joined    int  // viewers so far
	over      bool // Run has ended
	watching  sync.WaitGroup
}

// New makes an empty page.
func New(o Options) *Board {
	files, build := loadFiles()
	return &Board{version: o.Version, files: files, build: build, viewers: map[*viewer]struct{}{}}
}

// A note is something that happened to the process as a whole.
type note struct {
	At    instant `json:"at"`
	Level string  `json:"level"`
	Text  string  `json:"text"`
}

// Note puts an event of the process on the page, such as a reload or a step of the clock. The page knows the levels from
// info to error. The last 50 are kept; a text is cut to 240 bytes.
func (b *Board) Note(at time.Time, level slog.Level, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes = append(b.notes, note{instant(at), strings.ToLower(level.String()), cut(text, noteBytes)})
	b.notes = append(b.notes[:0], b.notes[max(0, len(b.notes)-keptNotes):]...)
	b.noted, b.full = true, nil
}

// changed says, with the lock held, that viewers need all of the page anew.
func (b *Board) changed() { b.renewed, b.full = true, nil }

// Run keeps the page up to date once a second. When ctx ends, everybody's stream ends, and Run returns nil after the
// last one did.
func (b *Board) Run(ctx context.Context) error {
	ticker := time.NewTicker(second)
	defer ticker.Stop()
	start := time.Now()
	for {
		now := time.Now()
		b.tick(now, int(now.Sub(start)/slotTime))
		select {
		case <-ctx.Done():
			b.end()
			return nil
		case <-ticker.C:
		}
	}
}

// tick asks every workload how it stands, notes it in the slot with that number, and sends the news.
func (b *Board) tick(now time.Time, slot int) {
	b.mu.Lock()
	asked := slices.Clone(b.workloads)
	b.mu.Unlock()
	states := make(map[*Workload]State, len(asked))
	for _, w := range asked { // without the lock: it may take one of the runner's
		states[w] = w.options.State()
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	b.now, b.full = now, nil
	rows := make([][]row, len(b.workloads))
	for i, w := range b.workloads {
		if state, ok := states[w]; ok { // else it came meanwhile
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
