package dispatch

import (
	"slices"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// A setting is a dispatcher of a looped plan and a clock that can be set.
type setting struct {
	*Dispatcher
	own  time.Duration // since epoch
	wall time.Duration // ahead of own
}

func (s *setting) step(e Event) []Action {
	own := epoch.Add(s.own)
	return s.Step(Clock{own, own.Add(s.wall)}, e)
}

// begin begins a loop of two seconds, and returns it.
func (s *setting) begin(number int64, on bool) *Loop {
	l := schedule.Loop{Number: number, Start: epoch.Add(time.Duration(number) * 2 * time.Second)}
	s.step(Event{Kind: LoopBegun, On: on, Plan: l, Period: 2 * time.Second})
	return s.Loop(number)
}

func (s *setting) read(l *Loop, at time.Duration) *Row {
	r := &Row{Weight: 1, Due: schedule.Due{At: l.Start.Add(at), Loop: l.Loop}}
	s.step(Event{Kind: RowRead, Loop: l, Row: r})
	return r
}

// The reader may hand over a row, or begin a loop, before it knows that the clock was set back by more than a loop. Neither of them keeps the plan from being
// entered where the clock is.
func TestReaderDoesNotKnowThatTheClockWasSet(t *testing.T) {
	for _, row := range []bool{true, false} {
		s := &setting{Dispatcher: New(Config{Lanes: 1, FollowsWall: true})}
		l := s.begin(0, false)
		s.read(l, 0)
		s.own, s.wall = time.Second, -24*time.Hour
		if row {
			s.read(l, 1500*time.Millisecond)
		} else {
			l = s.begin(1, true)
		}
		if room, _ := s.Room(l, l.Start.Add(time.Second), epoch.Add(s.own)); room != OffPlan {
			t.Errorf("row: %t: there is room %v, want the plan to be entered anew", row, room)
		}
		if n := s.Weight(); n != 0 {
			t.Errorf("row: %t: %d bytes of rows of the old instants are left", row, n)
		}
	}
}

// After a clock was set back by less than a loop, the rows of that time are played again. After more, the plan is entered
// anew, and the rows that were read are forgotten.
func TestClockSetBack(t *testing.T) {
	for back, want := range map[time.Duration]Rejoin{1900 * time.Millisecond: SetBack, 2100 * time.Millisecond: SetFarBack} {
		s := &setting{Dispatcher: New(Config{Lanes: 1, FollowsWall: true})}
		s.read(s.begin(0, false), 1500*time.Millisecond)
		s.own, s.wall = time.Second, -back
		var told []Rejoin
		for _, a := range s.step(Event{Kind: Tick}) {
			if a.Kind == Rejoined {
				told = append(told, a.Why)
			}
		}
		if len(told) != 1 || told[0] != want || (s.Weight() == 0) != (want == SetFarBack) {
			t.Errorf("back by %v: told %v, want %v; %d bytes of rows are kept", back, told, want, s.Weight())
		}
	}
}

// The loops of a plan that does not follow the wall clock go on at their pace when it is set.
func TestNextLoopAfterTheClockWasSet(t *testing.T) {
	for _, set := range []time.Duration{-24 * time.Hour, 24 * time.Hour, -10 * time.Millisecond} {
		s := &setting{Dispatcher: New(Config{Lanes: 1})}
		s.begin(0, false)
		s.own, s.wall = time.Second, set
		if r := s.read(s.begin(1, true), time.Second); !r.Due.At.Equal(epoch.Add(3 * time.Second)) {
			t.Errorf("set by %v: a row of the next loop is due %v after the begin, want 3s", set, r.Due.At.Sub(epoch))
		}
	}
}

// A standstill before the first row moves a plan whose begin may be later: its rows keep their distances, and none is missed. Another
// plan, and one that is under way, misses the rows of that time.
func TestStandstillBeforeTheBegin(t *testing.T) {
	for name, c := range map[string]struct {
		floats, under bool
		due           []time.Duration // since epoch, of the rows that are sent
		missed        int
	}{
		"floats":            {floats: true, due: []time.Duration{5000, 5010, 7100}},
		"is under way":      {floats: true, under: true, due: []time.Duration{900}, missed: 3},
		"has its own begin": {missed: 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := &setting{Dispatcher: New(Config{Lanes: 9, Floats: c.floats})}
			l := s.begin(0, false)
			var due []time.Duration
			missed := 0
			count := func(actions []Action) {
				for _, a := range actions {
					switch {
					case a.Kind == Send:
						due = append(due, a.Row.Due.At.Sub(epoch)/time.Millisecond)
					case a.Kind == Drop && a.Reason == measure.Missed:
						missed++
					}
				}
			}
			at := func(ms int) *Row { // a row that is due so many ms after the begin of the loop
				r := s.read(l, time.Duration(ms)*time.Millisecond)
				s.step(Event{Kind: Built, Row: r, Message: Message{Body: []byte("a")}})
				return r
			}
			if c.under {
				at(900)
			}
			at(1000)
			at(1010)
			at(3100)
			if s.own = 950 * time.Millisecond; c.under {
				count(s.step(Event{Kind: Tick}))
			}
			for _, ms := range []int{5000, 5010, 7100} { // at first the process stands still for four seconds
				s.own = time.Duration(ms) * time.Millisecond
				count(s.step(Event{Kind: Tick}))
			}
			if !slices.Equal(due, c.due) || missed != c.missed {
				t.Errorf("want rows sent that are due at %v, and %d missed, got %v and %d", c.due, c.missed, due, missed)
			}
		})
	}
}

// A reader that is through with a loop goes on where a standstill has ended, and no later than the plan's end and the
// handover. Where the plan's loops lie on the wall clock, it goes on where that is. A begin that moves leaves nothing
// out.
func TestReached(t *testing.T) {
	const began, ended = 1 * time.Second, 7 * time.Second // of the standstill
	wall := Config{FollowsWall: true}
	at := func(kind Kind, at, period time.Duration) Event {
		return Event{Kind: kind, At: epoch.Add(at), Period: period}
	}
	for name, c := range map[string]struct {
		config Config
		under  bool          // a row has come due before
		stands bool          // there is a standstill
		ahead  time.Duration // by which the wall clock is set in that time
		onWall bool
		event  Event         // at the begin
		want   time.Duration // planned, since epoch; -1: nowhere
	}{
		"no standstill":              {under: true, want: -1},
		"a standstill":               {under: true, stands: true, want: ended},
		"a clock that was set":       {under: true, ahead: time.Hour, want: -1},
		"before a begin that moves":  {config: Config{Floats: true}, stands: true, want: -1},
		"after such a begin":         {config: Config{Floats: true}, under: true, stands: true, want: ended},
		"before a begin that stands": {stands: true, want: ended},
		"an epoch, no standstill":    {config: wall, under: true, want: -1},
		"an epoch, a sleep":          {config: wall, under: true, ahead: time.Hour, want: time.Hour + ended},
		"the plan's end":             {under: true, stands: true, event: at(Bounds, 0, 4*time.Second), want: 4 * time.Second},
		"a handover":                 {under: true, stands: true, event: at(Retire, 5*time.Second, 0), want: 5 * time.Second},
		"a later handover":           {under: true, stands: true, event: at(Retire, 8*time.Second, 0), want: ended},
		"the wall clock":             {config: wall, onWall: true, want: ended},
		"the wall clock, set a bit":  {config: wall, onWall: true, ahead: time.Millisecond, want: ended + time.Millisecond},
		"the wall clock, a handover": {
			config: wall, onWall: true, stands: true, ahead: time.Hour,
			event: at(Retire, time.Minute, 0), want: time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Lanes = 9
			s := &setting{Dispatcher: New(c.config)}
			l := s.begin(0, false)
			if c.event.Kind != Tick {
				s.step(c.event)
			}
			if c.under {
				s.read(l, began/2)
			}
			for !c.stands && s.own < ended || s.own < began {
				s.own += time.Second / 2
				s.step(Event{Kind: Tick})
			}
			s.own, s.wall = ended, c.ahead
			s.step(Event{Kind: Poll})
			own := epoch.Add(s.own)
			got := s.Reached(l, Clock{own, own.Add(s.wall)}, c.onWall)
			if want := epoch.Add(c.want); c.want < 0 && !got.IsZero() || c.want >= 0 && !got.Equal(want) {
				t.Errorf("want %v after the epoch, got %v", c.want, got.Sub(epoch))
			}
		})
	}
}
