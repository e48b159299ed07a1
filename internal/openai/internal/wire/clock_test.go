package wire

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A settable is a Clock whose wall clock the test sets. Its monotonic clock stands still unless the test moves it.
type settable struct {
	*Clock
	mono   time.Time
	offset time.Duration
	tears  int // so many readings to come are torn: the thread is preempted between the two clocks
	lag    map[time.Time]time.Duration
}

func newSettable() *settable {
	s := &settable{Clock: NewClock(), lag: map[time.Time]time.Duration{}}
	s.mono = s.base
	s.now = s.reading
	s.wall = func(t time.Time) int64 { return t.Round(0).UnixNano() + int64(s.offset-s.lag[t]) }
	first := *s.distance.Load()
	first.ns = s.measure()
	s.distance.Store(&first)
	return s
}

func (s *settable) reading() time.Time {
	s.pass(20 * time.Nanosecond)
	if s.tears > 0 {
		s.tears--
		s.pass(3 * time.Millisecond)
		s.lag[s.mono] = 3 * time.Millisecond
	}
	return s.mono
}

// stamp is what the kernel says of bytes that come now.
func (s *settable) stamp() int64 { return s.mono.Round(0).UnixNano() + int64(s.offset) }

func (s *settable) pass(d time.Duration) { s.mono = s.mono.Add(d) }

const precise = 100 * time.Microsecond

// A read after a step of any size and either sign, at once and without an error of the step.
func TestClockSteps(t *testing.T) {
	for _, step := range []time.Duration{
		-time.Hour, -10 * time.Second, -time.Second, -300 * time.Millisecond, -128 * time.Millisecond, -time.Millisecond, -precise,
		precise, time.Millisecond, 128 * time.Millisecond, 300 * time.Millisecond, time.Second, 10 * time.Second, time.Hour,
	} {
		s := newSettable()
		since := s.mono
		for n := range 100 { // bytes each 20 ms that are read after 0.2 ms; the clock is set in the middle
			s.pass(19800 * time.Microsecond)
			if n == 50 {
				s.offset += step
			}
			came, stamp := s.mono, s.stamp()
			s.pass(200 * time.Microsecond)
			at, unsure := s.instant(stamp, s.mono, since)
			if off := at.Sub(came).Abs(); off > precise || unsure && n < 50 {
				t.Errorf("a step by %v: bytes %d are off by %v, unsure %v", step, n, off, unsure)
			}
			since = at
		}
	}
}

// A thread that is preempted between its readings of the two clocks has seen no step.
func TestPreemptionIsNoStep(t *testing.T) {
	s := newSettable()
	held := s.distance.Load()
	for tears := range 5 { // of the read, and of the five looks after it
		s.pass(time.Second)
		came, stamp := s.mono, s.stamp()
		s.tears = tears
		if at, unsure := s.instant(stamp, s.reading(), s.base); at.Sub(came).Abs() > precise || unsure {
			t.Errorf("%d torn readings: off by %v, unsure %v", tears, at.Sub(came), unsure)
		}
	}
	if s.distance.Load() != held {
		t.Error("a step was seen")
	}
}

// Whatever the steps, also between the timestamp and the read, an instant is off by no more than they are and by no more than the bytes
// waited, and is unsure if it is off at all.
func TestRandomSteps(t *testing.T) {
	unsures, strayed := 0, 0
	for seed := range 2000 {
		random := rand.New(rand.NewPCG(uint64(seed), 59))
		s := newSettable()
		since := s.mono
		set := func() (by time.Duration) {
			if random.IntN(20) > 0 {
				return 0
			}
			scales := []time.Duration{200 * time.Microsecond, 10 * time.Millisecond, time.Second, time.Hour}
			by = time.Duration(float64(scales[random.IntN(len(scales))]) * random.NormFloat64())
			s.offset += by
			return by
		}
		for n := range 50 {
			s.pass(time.Duration(random.ExpFloat64() * float64(20*time.Millisecond)))
			step := set() // one at most between two reads: what was between two steps, nothing tells
			s.pass(time.Duration(random.ExpFloat64() * float64(20*time.Millisecond)))
			came, stamp := s.mono, s.stamp()
			waits := time.Duration(random.ExpFloat64() * float64([]time.Duration{100 * time.Microsecond, 20 * time.Millisecond}[random.IntN(2)]))
			s.pass(waits / 2)
			if step == 0 {
				step = set()
			}
			s.pass(waits - waits/2)
			at, unsure := s.instant(stamp, s.mono, since)
			off := at.Sub(came).Abs()
			if off > precise {
				strayed++
			}
			if unsure {
				unsures++
			}
			if off > precise+min(step.Abs(), waits) || off > precise && !unsure || at.After(s.mono) {
				t.Errorf("seed %d, read %d: off by %v after a step by %v, read after %v; unsure %v", seed, n, off, step, waits, unsure)
			}
			if !unsure {
				since = at
			}
		}
	}
	t.Logf("of 100,000 reads %d were unsure, %d of them off", unsures, strayed)
	if strayed == 0 {
		t.Error("no read was off: no step hid between a timestamp and its read")
	}
}

// The real clocks agree with themselves. Twenty tries, of which one must succeed: a thread may be preempted at any point.
func TestClock(t *testing.T) {
	c := NewClock()
	var off time.Duration
	for range 20 {
		now := time.Now()
		at, unsure := c.instant(now.Add(-time.Millisecond).UnixNano(), now, c.base)
		if off = (now.Sub(at) - time.Millisecond).Abs(); off < measuring && !unsure {
			return
		}
	}
	t.Errorf("off by %v", off)
}
