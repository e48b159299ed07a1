package daemon

import (
	"container/heap"
	"math"
	"time"

	"replayd/internal/sim"
	"replayd/internal/trace"
)

// A forecast says when the rows of sessions end with an engine, from nothing but the graph, the waits and the engine's options. It knows an
// engine that computes prompts one at a time, with an endless cache, or takes a fixed time for each, and has slots for all requests.
type forecast struct {
	rows   []trace.Record
	engine sim.Options
	most   time.Duration // the limit of waits

	ends     []time.Duration
	open     []int           // by row: parents that have not ended
	ready    []time.Duration // by row: the latest of the parents' ends and waits so far
	children [][]int
	queue    []int // rows that arrived, in order
	busy     bool  // a prompt is computed
	seen     map[uint64]bool
	events   moments
	tied     bool // two things happen at one instant whose order decides what the engine does
}

// predict returns when each row ends, and whether the order of what happens at one instant could change that.
func predict(rows []trace.Record, engine sim.Options, most time.Duration) (ends []time.Duration, tied bool) {
	f := &forecast{
		rows: rows, engine: engine, most: most, ends: make([]time.Duration, len(rows)), open: make([]int, len(rows)),
		ready: make([]time.Duration, len(rows)), children: make([][]int, len(rows)), seen: map[uint64]bool{},
	}
	for i, r := range rows {
		f.open[i] = len(r.After)
		for _, e := range r.After {
			f.children[e.Row] = append(f.children[e.Row], i)
		}
		if !r.Floating {
			f.ready[i] = r.Offset
		}
		if f.open[i] == 0 {
			heap.Push(&f.events, moment{at: f.ready[i], row: i, what: arrives})
		}
	}
	for last := (moment{at: -1}); len(f.events) > 0; {
		now := heap.Pop(&f.events).(moment)
		if f.engine.TTFT == 0 && now.at == last.at && now.what != over && last.what != over {
			f.tied = true
		}
		if now.what != over {
			last = now
		}
		f.happen(now)
	}
	return f.ends, f.tied
}

const (
	arrives  = iota
	computed // the prompt is
	over
)

func (f *forecast) happen(now moment) {
	r := &f.rows[now.row]
	switch now.what {
	case arrives:
		if f.engine.TTFT > 0 {
			heap.Push(&f.events, moment{now.at + f.engine.TTFT, now.row, computed})
			return
		}
		f.queue = append(f.queue, now.row)
	case computed:
		f.busy = false
		for _, id := range r.Blocks {
			f.seen[id] = true
		}
		heap.Push(&f.events, moment{now.at + time.Duration(r.OutputTokens-1)*f.engine.ITL, now.row, over})
	case over:
		f.ends[now.row] = now.at
		for _, child := range f.children[now.row] {
			for _, e := range f.rows[child].After {
				if e.Row == now.row {
					f.ready[child] = max(f.ready[child], now.at+min(e.Wait, f.most))
				}
			}
			if f.open[child]--; f.open[child] == 0 {
				heap.Push(&f.events, moment{f.ready[child], child, arrives})
			}
		}
	}
	if !f.busy && len(f.queue) > 0 {
		next := f.queue[0]
		f.queue, f.busy = f.queue[1:], true
		heap.Push(&f.events, moment{now.at + f.prefill(next), next, computed})
	}
}

// prefill returns the time that a prompt takes: that of its tokens behind the leading blocks that were computed before. The last token is
// always computed.
func (f *forecast) prefill(row int) time.Duration {
	r, hits := &f.rows[row], 0
	for hits < min(len(r.Blocks), (r.InputTokens-1)/f.engine.BlockTokens) && f.seen[r.Blocks[hits]] {
		hits++
	}
	return time.Duration(math.Round(float64(r.InputTokens-hits*f.engine.BlockTokens) / f.engine.PrefillRate * 1e9))
}

// A moment is something that happens to a row.
type moment struct {
	at   time.Duration
	row  int
	what int
}

type moments []moment

func (h moments) Len() int           { return len(h) }
func (h moments) Less(i, j int) bool { return h[i].at < h[j].at }
func (h moments) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *moments) Push(x any)        { *h = append(*h, x.(moment)) }
func (h *moments) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
