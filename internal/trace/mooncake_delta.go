package trace

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"replayd/internal/fault"
)

// Dynamo's mooncake-delta (ai-dynamo/dynamo PR #9653; lib/mocker/src/loadgen, trace.rs: Trace::from_mooncake, driver.rs:
// PromptMode::DeltaCumulative, as of 1.4.0): rows as in Mooncake, but the input_length and the hash_ids of a session's row are only what is new
// in it. Its prompt is everything before: the input and the answer of each earlier row, and then its own. A row of a session comes
// after the end of the row before it, by delay, else by the difference of their timestamps, else at once.
//
// Dynamo hashes the whole prompts again, by token. Blocks of more than 64 tokens are halved here, so that few tokens of a prompt lie in
// its last block, which is not full and is another block in the next row. Whatever follows an answer is of this session alone.
// Dynamo cuts an input to what its ids cover; here fewer ids than blocks are an error, as in Mooncake.
const deltaBlock = 64

// A deltaReader lowers rows one by one. For each session it keeps the ids of its prompt so far.
type deltaReader struct {
	lowering *lowering
	trace    int               // tokens of a block in the file
	parts    uint64            // blocks that one of the file's becomes
	numbers  map[uint64]uint64 // by the file's id: the number of its first part
	next     uint64
	sessions map[string]*deltaSession
}

// A deltaSession is what the rows of a session have said so far.
type deltaSession struct {
	row    int // the last one, as the lowering counts
	line   int
	tokens int // of all inputs and answers
	blocks []uint64
	at     time.Duration // the last timestamp
	timed  bool          // there is one
}

func newDeltaReader(l *lowering) *deltaReader {
	d := &deltaReader{
		lowering: l, trace: cmp.Or(l.options.BlockTokens, blockSizes[0]), parts: 1, numbers: map[uint64]uint64{},
		sessions: map[string]*deltaSession{},
	}
	l.block = d.trace
	for l.block > deltaBlock && l.block%2 == 0 {
		l.block /= 2
		d.parts *= 2
	}
	return d
}

func (d *deltaReader) read(line int, text []byte) (fault.List, error) {
	o, r := object{}, Record{}
	if found := o.read(text, "row"); found != nil {
		return found, nil
	}
	if d.row(&o, &r, line); len(o.faults) > 0 {
		return o.faults, nil
	}
	return nil, d.lowering.row(&r)
}

func (d *deltaReader) row(o *object, r *Record, line int) {
	r.Session = o.text("session_id", MaxSessionBytes)
	input, ids := o.alias("input_length", "input_tokens"), o.ids("hash_ids", nil)
	if r.OutputTokens = o.alias("output_length", "output_tokens"); r.OutputTokens == 0 && len(o.faults) == 0 {
		o.fault("output_length", anInteger, "none")
	}
	if input == 0 { // the blocks are full
		input = min(len(ids)*d.trace, MaxTokens)
	}
	want := max(1, blocksOf(input, d.trace))
	switch {
	case len(o.faults) > 0:
	case len(ids) == 0:
		o.fault("hash_ids", fmt.Sprintf("%d ids", want), "none")
	case len(ids) != want:
		o.fault("hash_ids", fmt.Sprintf("%d ids for %d tokens in blocks of %d", want, input, d.trace), strconv.Itoa(len(ids)))
	}
	at, timed := o.alternate("timestamp", "created_time")
	delay, delayed := o.alternate("delay", "delay_ms")
	before := d.sessions[r.Session]
	if r.Session == "" || before == nil {
		before = &deltaSession{at: at, timed: timed}
		r.Offset = at
		if delay > 0 {
			o.fault("delay", "none in a session's first row", inUnits(delay, time.Millisecond))
		}
		if r.Session != "" {
			r.After = []Edge{}
		}
	} else {
		switch {
		case delayed:
		case timed && !before.timed:
			o.fault("timestamp", fmt.Sprintf("none or a delay, as line %d has no timestamp", before.line), "one")
		case timed && at < before.at:
			want := fmt.Sprintf("≥ %s, that of the session's turn before on line %d",
				inUnits(before.at, time.Millisecond), before.line)
			o.fault("timestamp", want, inUnits(at, time.Millisecond))
		case timed:
			delay = at - before.at
		}
		r.After, r.Floating = []Edge{{before.row, delay}}, true
	}
	if r.InputTokens = before.tokens + input; r.InputTokens+r.OutputTokens > MaxTokens {
		o.fault("input_length", fmt.Sprintf("at most %d tokens with all before it in its session", MaxTokens), strconv.Itoa(r.InputTokens+r.OutputTokens))
	}
	if len(o.faults) > 0 {
		return
	}
	if before.tokens == 0 {
		before.blocks = d.number(ids)
	}
	before.blocks = d.fill(before.blocks, r.InputTokens/d.lowering.block)
	r.Blocks = before.blocks
	before.row, before.line, before.tokens = len(d.lowering.rows), line, r.InputTokens+r.OutputTokens
	if timed {
		before.at, before.timed = at, true
	}
	if r.Session != "" {
		d.sessions[r.Session] = before
	}
}

// alternate reads a time that has two names.
func (o *object) alternate(key, other string) (at time.Duration, ok bool) {
	if o.value(key) == nil && o.value(other) != nil {
		key = other
	}
	return o.time(key, time.Millisecond)
}

// number numbers the parts of blocks of the file.
func (d *deltaReader) number(ids []uint64) []uint64 {
	parts := make([]uint64, 0, len(ids)*int(d.parts))
	for _, id := range ids {
		first := numberOf(d.numbers, id, &d.next, d.parts)
		for i := range d.parts {
			parts = append(parts, first+i)
		}
	}
	return parts
}

// fill makes the blocks those of a prompt with so many full ones: new blocks are the session's own.
func (d *deltaReader) fill(blocks []uint64, full int) []uint64 {
	for len(blocks) < full {
		blocks = append(blocks, d.next)
		d.next++
	}
	return blocks[:full]
}
