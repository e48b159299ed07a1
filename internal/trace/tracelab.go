package trace

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"replayd/internal/fault"
	"replayd/internal/trace/ids"
)

// TraceLab's format (uw-syfi/TraceLab, README.md and artifacts/utils/timing.py, at 0b8a262) is one round of a coding
// agent a line: what one answer took. It has no ids of blocks, and no link from a session to its sub-agents.

// traceLabBlock is how many tokens the blocks have that are made for the rounds, as in Weka.
const traceLabBlock = 64

// maxEvents bounds the events of a round.
const maxEvents = 1 << 16

// A traceLabReader collects rounds until all are known, because those of a session may stand in any order. In memory a
// round takes some 150 bytes, with its row.
type traceLabReader struct {
	lowering *lowering
	names    []string         // of the sessions
	sessions map[string]int32 // by name: the index
	rounds   []round
	keys     map[uint64]bool // of rounds so far

	twice, empty, inputless, open int
}

// A round is one request and its answer.
type round struct {
	session               int32
	index                 int // in its session, as the file counts
	start, end            time.Duration
	input, prefix, output int // tokens
}

func newTraceLabReader(l *lowering) *traceLabReader {
	t := &traceLabReader{lowering: l, sessions: map[string]int32{}, keys: map[uint64]bool{}}
	l.settle, l.block = t.settle, traceLabBlock
	return t
}

func (t *traceLabReader) read(_ int, text []byte) (fault.List, error) {
	o := object{}
	if found := o.read(text, "row"); found != nil {
		return found, nil
	}
	name := o.text("session_id", MaxSessionBytes)
	o.needs("session_id", "a string")
	key := o.text("trace_key", MaxLineBytes)
	r := round{
		index: o.rowNumber("round_index"), input: o.count("input_tokens_total"), prefix: o.count("prefix_tokens"),
		output: max(1, o.count("output_tokens")),
	}
	for _, key := range []string{"round_index", "input_tokens_total", "prefix_tokens", "output_tokens"} {
		o.needs(key, "an integer ≥ 0")
	}
	fresh := o.count("newly_append_tokens")
	if o.value("newly_append_tokens") != nil && len(o.faults) == 0 && r.prefix+fresh != r.input {
		want := fmt.Sprintf("%d, prefix_tokens + newly_append_tokens", r.prefix+fresh)
		o.fault("input_tokens_total", want, fmt.Sprint(r.input))
	}
	if len(o.faults) == 0 && r.prefix > r.input {
		o.fault("prefix_tokens", fmt.Sprintf("at most %d, input_tokens_total", r.input), fmt.Sprint(r.prefix))
	}
	e := o.roundEvents()
	switch {
	case len(o.faults) > 0:
		return o.faults, nil
	case key != "" && t.keys[ids.Hash(key)]: // its writer keeps the first one, too
		t.twice++
		return nil, nil
	case r.input == 0: // no model was asked
		t.empty++
		return nil, nil
	}
	if key != "" {
		t.keys[ids.Hash(key)] = true
	}
	r.session = t.sessionOf(name)
	r.start, r.end = e.times()
	if !e.asked() {
		t.inputless++
	}
	if e.answered == 0 {
		t.open++
	}
	t.rounds = append(t.rounds, r)
	return nil, nil
}

func (t *traceLabReader) sessionOf(name string) int32 {
	of, known := t.sessions[name]
	if !known {
		of = int32(len(t.names))
		t.names, t.sessions[name] = append(t.names, name), of
	}
	return of
}

// roundEvents are instants of a round. 0: there is none.
type roundEvents struct {
	input           time.Duration // the latest input that is not after the first output
	first, answered time.Duration // the first and the last output
}

// times returns when a round was sent and when its answer ended. A round without an input is sent at its first output,
// and one without an output ends when it is sent.
func (e *roundEvents) times() (start, end time.Duration) {
	if start = e.input; !e.asked() {
		start = e.first
	}
	return start, max(start, e.answered)
}

func (e *roundEvents) asked() bool { return e.input > 0 }

// roundEvents reads the field timing_events. TraceLab's own figures take the same events for input and output.
func (o *object) roundEvents() (all roundEvents) {
	o.needs("timing_events", "a list of events")
	var inputs []time.Duration
	list := o.list("timing_events", "a list of events", maxEvents)
	for i, text := range list {
		e := object{}
		if found := e.read(text, ""); found != nil {
			o.addFaults(fmt.Sprintf("timing_events[%d]", i), found)
			continue
		}
		at, ok := e.date("timestamp")
		switch kind := e.text("event_type", MaxSessionBytes); {
		case !ok:
		case kind == "user_message", kind == "tool_result":
			inputs = append(inputs, at)
		case kind == "reasoning", kind == "text", kind == "tool_call":
			all.answered = max(all.answered, at)
			if all.first == 0 || at < all.first {
				all.first = at
			}
		}
		o.addFaults(fmt.Sprintf("timing_events[%d]", i), e.faults)
	}
	for _, at := range inputs {
		if all.first == 0 || at <= all.first {
			all.input = max(all.input, at)
		}
	}
	if len(o.faults) == 0 && all.input == 0 && all.first == 0 {
		o.fault("timing_events", "an input or an output with a timestamp", "none")
	}
	return all
}

// settle makes the rows. The rounds of a session are in the order of their indices, as in TraceLab's own replay.
func (t *traceLabReader) settle() error {
	slices.SortStableFunc(t.rounds, func(a, b round) int {
		return cmp.Or(cmp.Compare(a.session, b.session), cmp.Compare(a.index, b.index))
	})
	l, blocks := t.lowering, roundBlocks{}
	var prefix, missing, early int
	for i, r := range t.rounds {
		row := Record{
			Offset: r.start, InputTokens: r.input, OutputTokens: r.output, Session: t.names[r.session], After: []Edge{},
		}
		if i > 0 && t.rounds[i-1].session == r.session {
			before := t.rounds[i-1]
			row.After = []Edge{{len(l.rows) - 1, max(0, r.start-before.end)}}
			row.Offset = allowed(row.After, func(row int) int64 { return l.rows[row].at })
			row.Floating = true
			if r.start < before.end {
				early++
			}
		} else {
			blocks.all = blocks.all[:0]
		}
		prefix += r.prefix
		missing += blocks.next(r.prefix, r.input)
		row.Blocks = blocks.ids()
		if err := l.row(&row); err != nil {
			return err
		}
	}
	l.warn(t.twice, "rounds with the trace_key of a round before are left out: %d", t.twice)
	l.warn(t.empty, "rounds without input tokens are left out: %d", t.empty)
	all := len(t.rounds)
	l.warn(t.inputless, "rounds without an input before their answer: %d of %d: each is sent at the first event of its "+
		"answer", t.inputless, all)
	l.warn(t.open, "rounds without an event of their answer: %d of %d: the wait after each includes the time of its answer",
		t.open, all)
	l.warn(early, "rounds that began before the answer before them ended: %d of %d: each is sent at once after it",
		early, all)
	l.warn(missing, "tokens of prefixes that the round before does not have: %d of %d: their blocks are new",
		missing, prefix)
	return nil
}

// roundBlocks are the blocks of a round's prompt, as runs of numbers that follow each other.
type roundBlocks struct {
	all   []blockRun
	fresh uint64 // the number of the next new block
	list  []uint64
}

type blockRun struct {
	first  uint64
	blocks int
}

// next goes on to the next round of a session: it keeps the full blocks of the prefix and adds new ones. It returns how
// many tokens of the prefix's full blocks the round before does not have.
func (b *roundBlocks) next(prefix, input int) (missing int) {
	wanted := prefix / traceLabBlock
	left := wanted
	for i := range b.all {
		run := &b.all[i]
		if left <= run.blocks {
			run.blocks, left = left, 0
			b.all = b.all[:i+1]
			break
		}
		left -= run.blocks
	}
	if fresh := input/traceLabBlock - (wanted - left); fresh > 0 {
		b.all = append(b.all, blockRun{b.fresh, fresh})
		b.fresh += uint64(fresh)
	}
	return left * traceLabBlock
}

// ids returns the numbers of the blocks. The list is valid until the next call.
func (b *roundBlocks) ids() []uint64 {
	b.list = b.list[:0]
	for _, run := range b.all {
		for i := range run.blocks {
			b.list = append(b.list, run.first+uint64(i))
		}
	}
	return b.list
}
