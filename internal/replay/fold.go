package replay

import (
	"encoding/binary"
	"time"

	"replayd/internal/limits"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// A fold is a part of what is parked: items of one loop, whose instants are near each other.
type fold struct {
	loop  *loop
	of    schedule.Loop // loop.Loop as it was when their rows were read
	base  time.Time
	code  []byte // an item after the other: its length and that many bytes; of length 0 is the next of whole
	read  int    // bytes of them that were taken
	whole []*item
	more  []more
}

// more is what an item has beside numbers.
type more struct {
	session *session
	name    string        // of the session
	row     *trace.Record // of a row that brings its own texts; nil: it does not
}

// What stands in an item's code behind its marks.
const (
	hasTimes = 1 << (8 + iota) // planned and due are not ready
	hasMore
	hasRow  // in more
	hasTurn // its place in a conversation, or a pass
)

// marks are an item's yes and no.
func (it *item) marks() [8]*bool {
	return [...]*bool{&it.waited, &it.expected, &it.follows, &it.late, &it.trial, &it.held, &it.clipped, &it.cancel}
}

// foldable says whether an item is nothing but its row and its instants.
func (it *item) foldable() bool {
	return it.body == nil && it.err == nil && it.size == 0 && !it.building && !it.filtered && it.cut == 0 && it.answers == nil &&
		it.charged.IsZero() && it.cost == limits.Cost{} && steps(it.ready, it.planned) && steps(it.ready, it.due.At)
}

// steps says whether the way from one instant to another leads there exactly: on both clocks, and with a reading of the
// monotonic one or without, which Equal would not tell apart.
func steps(from, to time.Time) bool {
	return from.Add(to.Sub(from)) == to //nolint:staticcheck // Equal does not tell them apart
}

// add folds an item; scratch is space that add may use.
func (f *fold) add(it *item, scratch []byte) []byte {
	rec := &it.due.Record
	flags := uint64(0)
	for i, is := range it.marks() {
		if *is {
			flags |= 1 << i
		}
	}
	m := more{session: it.session, name: rec.Session}
	if !it.planned.Equal(it.ready) || !it.due.At.Equal(it.ready) {
		flags |= hasTimes
	}
	if rec.Parts != nil || rec.Text != "" || rec.Messages != nil || rec.Tools != nil || rec.Payload != nil || rec.Extra != nil ||
		rec.Blocks != nil && len(rec.Blocks) == 0 {
		row := *rec
		m.row = &row
		flags |= hasRow
	} else if rec.Turn != 0 || rec.Delay != 0 || rec.Gap != 0 || rec.Pass != 0 {
		flags |= hasTurn
	}
	if m != (more{}) {
		f.more = append(f.more, m)
		flags |= hasMore
	}

	b := binary.AppendVarint(scratch[:0], int64(it.ready.Sub(f.base)))
	b = binary.AppendUvarint(b, flags)
	put := func(numbers ...int64) {
		for _, n := range numbers {
			b = binary.AppendVarint(b, n)
		}
	}
	if flags&hasTimes != 0 {
		put(int64(it.planned.Sub(it.ready)), int64(it.due.At.Sub(it.ready)))
	}
	put(it.seq, int64(it.offset-rec.Offset), int64(it.weight), int64(it.counted))
	if flags&hasRow == 0 {
		put(int64(rec.Number), int64(rec.Line-rec.Number), int64(rec.Offset), int64(rec.InputTokens), int64(rec.OutputTokens))
		if flags&hasTurn != 0 {
			put(int64(rec.Turn), int64(rec.Delay), int64(rec.Gap), rec.Pass)
		}
		last := uint64(0)
		for _, id := range rec.Blocks { // most ids of a trace follow each other
			put(int64(id - last))
			last = id
		}
	}
	f.code = binary.AppendUvarint(f.code, uint64(len(b)))
	f.code = append(f.code, b...)
	return b
}

// next is the code of the item that is taken next; empty: it is the first of whole.
func (f *fold) next() (code []byte, end int) {
	n, bytes := binary.Uvarint(f.code[f.read:])
	end = f.read + bytes + int(n)
	return f.code[f.read+bytes : end], end
}

// ready is when the next item was.
func (f *fold) ready() time.Time {
	code, _ := f.next()
	if len(code) == 0 {
		return f.whole[0].ready
	}
	after, _ := binary.Varint(code)
	return f.base.Add(time.Duration(after))
}

// take unfolds the next item, with its row's blocks or without.
func (f *fold) take(blocks bool) *item {
	code, end := f.next()
	f.read = end
	if len(code) == 0 {
		it := f.whole[0]
		f.whole[0] = nil
		f.whole = f.whole[1:]
		return it
	}
	get := func() int64 {
		n, bytes := binary.Varint(code)
		code = code[bytes:]
		return n
	}
	span := func() time.Duration { return time.Duration(get()) }
	it := &item{state: waiting, loop: f.loop, ready: f.base.Add(span())}
	flags, bytes := binary.Uvarint(code)
	code = code[bytes:]
	for i, is := range it.marks() {
		*is = flags&(1<<i) != 0
	}
	var m more
	if flags&hasMore != 0 {
		m, f.more[0] = f.more[0], more{}
		f.more = f.more[1:]
	}
	it.session, it.due.Loop = m.session, f.of
	it.planned, it.due.At = it.ready, it.ready
	if flags&hasTimes != 0 {
		it.planned, it.due.At = it.ready.Add(span()), it.ready.Add(span())
	}
	it.seq, it.offset, it.weight, it.counted = get(), span(), int(get()), int(get())
	rec := &it.due.Record
	if m.row != nil {
		*rec = *m.row
	} else {
		rec.Number, rec.Line = int(get()), int(get())
		rec.Line += rec.Number
		rec.Offset, rec.InputTokens, rec.OutputTokens = span(), int(get()), int(get())
		if flags&hasTurn != 0 {
			rec.Turn, rec.Delay, rec.Gap, rec.Pass = int(get()), span(), span(), get()
		}
		rec.Session = m.name
		if blocks {
			rec.Blocks = unfoldBlocks(code)
		}
	}
	it.offset += rec.Offset
	return it
}

func unfoldBlocks(code []byte) (ids []uint64) {
	n := 0
	for _, b := range code {
		if b < 0x80 { // the last byte of an id
			n++
		}
	}
	if n == 0 {
		return nil
	}
	ids = make([]uint64, n)
	last := uint64(0)
	for i := range ids {
		step, bytes := binary.Varint(code)
		code = code[bytes:]
		last += uint64(step)
		ids[i] = last
	}
	return ids
}
