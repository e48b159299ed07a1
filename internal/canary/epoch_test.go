package canary

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// A restart of an engine forgets the latencies and keeps the failures; a new epoch forgets all.
func TestRestart(t *testing.T) {
	s := newSource(3)
	s.form = func(p *Pair, rng *rand.Rand) { p.Requests[Candidate].Bad = rng.Float64() < 0.2 }
	c := New(Defaults())
	for range 600 {
		c.Add(s.next())
	}
	before := c.Judge()
	c.RestartLatencies()
	after := c.Judge()
	if before.Metrics[TTFT].Blocks == 0 || after.Metrics[TTFT].Blocks != 0 || after.Metrics[Tail].Blocks != 0 {
		t.Errorf("blocks of ttft %d, then %d, of tail %d", before.Metrics[TTFT].Blocks, after.Metrics[TTFT].Blocks, after.Metrics[Tail].Blocks)
	}
	if after.Metrics[Bad] != before.Metrics[Bad] && !math.IsNaN(before.Metrics[Bad].Ratio) {
		t.Errorf("bad: %+v, then %+v", before.Metrics[Bad], after.Metrics[Bad])
	}
	c.Restart()
	if j := c.Judge(); j.Pairs != (Pairs{}) || j.Metrics[Bad].Blocks != 0 {
		t.Errorf("a new epoch has %+v", j)
	}
}

// Memory does not grow with pairs and blocks.
func TestConstantMemory(t *testing.T) {
	for _, mode := range []Mode{ModeVerdict, ModeWatch} {
		s := newSource(5)
		o := Defaults()
		o.Mode = mode
		c := New(o)
		for range 3600 {
			c.Add(s.next())
		}
		p := s.next()
		n := uint64(math.MaxUint64)
		add := func() {
			for range 100_000 {
				p.At = p.At.Add(time.Second)
				for side := range p.Requests {
					p.Requests[side].Sent, p.Requests[side].First = p.At, p.At.Add(p.Requests[side].TTFT)
				}
				c.Add(p)
			}
		}
		for tries := 0; tries < 3 && n > maxAllocated; tries++ { // the runtime allocates too
			n = min(n, allocated(add))
		}
		if n > maxAllocated {
			t.Errorf("%s: %d bytes allocated in 1,666 blocks, want at most %d", mode, n, maxAllocated)
		}
	}
}

// maxAllocated is for the objects that the runtime allocates now and then beside a test, bytes. Eight bytes kept of
// each of 1,666 blocks are three times as much.
const maxAllocated = 4 << 10

// allocated returns the bytes that f allocates, with those of the runtime beside it.
func allocated(f func()) uint64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// The totals count the blocks and pairs of all epochs.
func TestTotals(t *testing.T) {
	for _, mode := range []Mode{ModeVerdict, ModeWatch} {
		s := newSource(6)
		s.form = func(p *Pair, rng *rand.Rand) {
			p.Void = late(s.at.Unix()%7200 < 600)
			p.Requests[Candidate].Bad = rng.Float64() < 0.1
		}
		o := Defaults()
		o.Mode = mode
		c := New(o)
		judged, blocks, skipped := int64(0), int64(0), int64(0)
		count := func() {
			j := c.Judge()
			judged, blocks = judged+j.Pairs.Judged, blocks+c.ended
			for _, n := range j.Skipped {
				skipped += n
			}
		}
		for n := range 20_000 {
			if n%5000 == 4999 {
				c.RestartLatencies()
			}
			if n%9000 == 8999 {
				count()
				c.Restart()
			}
			c.Add(s.next())
		}
		count()
		totals := c.counters.Totals()
		all := int64(0)
		for _, n := range totals.Skipped {
			all += n
		}
		ttft, bad := totals.Metrics[TTFT], totals.Metrics[Bad]
		if totals.Pairs.Judged != judged || totals.Pairs.Judged+totals.Pairs.Void != 20_000 || all != skipped || totals.Skipped[SkipVoid] == 0 {
			t.Errorf("%s: %+v, want %d judged and %d skipped", mode, totals, judged, skipped)
		}
		if got := ttft.Above + ttft.At + ttft.Below; got != blocks-skipped {
			t.Errorf("%s: %d blocks of ttft, want %d", mode, got, blocks-skipped)
		}
		if got := bad.Above + bad.At + bad.Below; got != blocks || bad.Above < blocks/2 || bad.Below > 0 {
			t.Errorf("%s: blocks of bad are %+v, want %d", mode, bad, blocks)
		}
		if mode == ModeWatch && bad.Changes[More] == 0 {
			t.Errorf("changes of bad: %v", bad.Changes)
		}
	}
}
