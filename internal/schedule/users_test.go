package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"replayd/internal/trace"
)

// The table in AIPerf's src/aiperf/timing/strategies/user_centric_rate.py, for 15 users and 20 turns. The others
// are computed by hand.
func TestTurnsLeft(t *testing.T) {
	f := func(users, turns int, want ...int) {
		t.Helper()
		if got := TurnsLeft(users, turns); !slices.Equal(got, want) {
			t.Errorf("%d users of %d turns: %v, want %v", users, turns, got, want)
		}
	}
	f(15, 20, 20, 6, 11, 16, 2, 7, 12, 17, 3, 8, 13, 18, 4, 9, 14)
	f(4, 5, 5, 1, 2, 3) // 4 and 4 share a factor, so the step is 3
	f(1, 7, 7)
	f(2, 3, 3, 1)
	f(3, 1, 1, 1, 1)
	f(3, 2, 2, 1, 1)

	// Every user has a place, and the ages are even: for n users and L ages, each age has ⌊n/L⌋ or ⌈n/L⌉ users. The
	// age of the first user is 0.
	for users := 1; users <= 40; users++ {
		for turns := 1; turns <= 30; turns++ {
			life := max(1, turns-1)
			counts := make([]int, life+1)
			for _, left := range TurnsLeft(users, turns)[1:] {
				if left < 1 || left > life {
					t.Fatalf("%d users of %d turns: %d left", users, turns, left)
				}
				counts[left]++
			}
			for left, n := range counts[1:] {
				if n < users/life-1 || n > users/life+1 {
					t.Errorf("%d users of %d turns: %d with %d left", users, turns, n, left+1)
				}
			}
		}
	}
}

// The same assignment as AIPerf's code computes it, for many numbers of users and turns.
func TestTurnsLeftIsAIPerfs(t *testing.T) {
	for users := 1; users <= 40; users++ {
		for turns := 1; turns <= 30; turns++ {
			lifetime := max(1, turns-1)
			common := gcd(users, lifetime) > 1
			step := 1
			if common {
				for n := 2; n < users; n++ {
					if gcd(n, users) == 1 {
						step = n
						break
					}
				}
			}
			left := TurnsLeft(users, turns)
			seen := map[int]bool{0: true}
			for i := 1; i < users; i++ {
				age := (users - i) * lifetime
				slot := users - age%users
				if common {
					slot = users - i*step%users
				}
				seen[slot] = true
				if got, want := left[slot], lifetime-age/users; got != want {
					t.Fatalf("%d users, %d turns: slot %d has %d turns left, want %d", users, turns, slot, got, want)
				}
			}
			if len(seen) != users {
				t.Fatalf("%d users, %d turns: %d slots", users, turns, len(seen))
			}
		}
	}
}

func TestUsersShareConversations(t *testing.T) {
	row := func(number int, session string) trace.Record { return trace.Record{Number: number, Session: session} }
	src := FromRecords([]trace.Record{row(0, "a"), row(1, ""), row(2, "c"), row(3, "a"), row(4, "c"), row(5, "a")}, false)
	p := plan(t, src, Options{Pattern: Pattern{Arrival: Users, Users: 2, Rate: 4}, Repeat: Repeat{Mode: Once}, Rows: 13})
	all := dues(t, p, p.Loop(epoch, epoch), epoch)
	// The mean conversation has two turns, so the second user starts with one turn left. It plays the whole
	// conversation that has one turn.
	want := []key{
		{0, 0}, {1, 0}, {3, 0}, {2, 0}, {5, 0}, {4, 0}, // the first user plays a, the second user plays row 1 and c
		{0, 1}, {1, 1}, {3, 1}, {2, 1}, {5, 1}, {4, 1}, {0, 2},
	}
	if !slices.Equal(keys(all), want) {
		t.Errorf("got  %v\nwant %v", keys(all), want)
	}
	for i, d := range all {
		gap := 500 * ms
		if d.Session == "" {
			gap = 0
		}
		if d.At.Sub(epoch) != time.Duration(i)*250*ms || d.Gap != gap || d.Turn != map[int]int{3: 1, 4: 1, 5: 2}[d.Number] {
			t.Errorf("row %d at %v, gap %v, turn %d", i, d.At.Sub(epoch), d.Gap, d.Turn)
		}
	}
	// Without Rows, there are as many rows as in the source. Rows of a generator are taken in order.
	if got := len(instants(t, plan(t, src, Options{
		Pattern: Pattern{Arrival: Users, Users: 2, Rate: 4},
		Repeat:  Repeat{Mode: Once},
	}))); got != 6 {
		t.Errorf("%d rows, want 6", got)
	}
	made := plan(t, untimed(3), Options{Pattern: Pattern{Arrival: Users, Users: 2, Rate: 4}, Repeat: Repeat{Mode: Once}, Rows: 4})
	if got := keys(dues(t, made, made.Loop(epoch, epoch), epoch)); !slices.Equal(got, []key{{0, 0}, {1, 0}, {2, 0}, {0, 1}}) {
		t.Errorf("%v", got)
	}
}

// Each user plays conversations to their last turn, turn by turn. Only the conversations that users are in when the
// loop begins may start at a later turn. In one pass, a conversation belongs to a single user.
func TestPropertiesOfUsers(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	for range 200 {
		rows := random(rng)
		length := map[string]int{}
		for _, r := range rows {
			length[r.Session]++
		}
		o := Options{
			Pattern: Pattern{Arrival: Users, Users: 1 + rng.IntN(20), Rate: 1 + rng.Float64(), Speed: 1},
			Repeat:  Repeat{Mode: Once}, Rows: 1 + rng.IntN(1000),
		}
		p := plan(t, FromRecords(rows, false), o)
		all := dues(t, p, p.Loop(epoch, epoch), epoch)
		if len(all) != o.Rows {
			t.Fatalf("%+v: %d rows", o, len(all))
		}
		type conversation struct {
			session string
			number  int // if there is no session
			pass    int64
		}
		owner := map[conversation]int{}
		for u := range o.Users {
			for i := u; i < len(all); i += o.Users {
				d, fresh := all[i], i >= o.Users || i == 0
				last := d.Session == "" || d.Turn == length[d.Session]-1
				c := conversation{d.Session, 0, d.Pass}
				if d.Session == "" {
					c.number = d.Number
				}
				by, begun := owner[c]
				switch {
				case begun && by != u:
					t.Fatalf("%+v: conversation %v is user %d's and %d's", o, c, by, u)
				case !begun && d.Turn > 0 && fresh:
					t.Fatalf("%+v: user %d begins %v with turn %d", o, u, c, d.Turn)
				}
				owner[c] = u
				if next := i + o.Users; next < len(all) && !last && (all[next].Session != d.Session || all[next].Turn != d.Turn+1 || all[next].Pass != d.Pass) {
					t.Fatalf("%+v: after turn %d of %v comes turn %d of %q", o, d.Turn, c, all[next].Turn, all[next].Session)
				}
			}
		}
	}
}

func TestUsersHoldABoundedSource(t *testing.T) {
	row := trace.Record{Text: string(make([]byte, 1<<20))}
	src := Source{Rows: func(time.Duration) (func() (trace.Record, error), error) {
		return func() (trace.Record, error) { return row, nil }, nil
	}}
	_, err := New(src, Options{Pattern: Pattern{Arrival: Users, Users: 1, Rate: 1, Speed: 1}, Repeat: Repeat{Mode: Once}})
	if want := `arrival: want rows of at most 1024 MiB together for "users", got more`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
