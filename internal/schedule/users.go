package schedule

import (
	"math"
	"time"

	"replayd/internal/trace"
)

// users share the conversations of a source: row i of a loop is a turn of user i mod n. A user plays one conversation after
// the other; each begins the next one that no other user has begun, and after the last the first comes round again, with a higher
// Record.Pass. A row of no session is a conversation of one turn.
//
// At a loop's start the users are in the midst of things, as if they had been at it for long: only the first begins its first
// conversation from the front, the others where turnsLeft says. What they leave out counts as having happened.
type users struct {
	n             int
	conversations [][]trace.Record // in the order of their first rows
	place         map[string]int   // of a session among them
	size          int              // bytes of the rows' own content
	left          []int
}

// Bounds of what is held in memory.
const (
	mostUsers     = 1 << 20
	mostHeldBytes = 1 << 30 // of rows
	rowBytes      = 512     // of a row without its own content
)

// add adds the next row of the window.
func (u *users) add(r trace.Record) error {
	if u.size += rowBytes + r.Bytes(); u.size > mostHeldBytes {
		return faulty("arrival", "want rows of at most %d MiB together for %q, got more", mostHeldBytes>>20, Users)
	}
	i, ok := u.place[r.Session]
	if !ok || r.Session == "" {
		i = len(u.conversations)
		u.conversations = append(u.conversations, nil)
		if u.place == nil {
			u.place = map[string]int{}
		}
		u.place[r.Session] = i
	}
	r.Turn = len(u.conversations[i])
	u.conversations[i] = append(u.conversations[i], r)
	return nil
}

// settle computes when each user begins a conversation. It is called once, after the last row.
func (u *users) settle() {
	rows := 0
	for _, c := range u.conversations {
		rows += len(c)
	}
	for _, c := range u.conversations {
		for i := range c {
			c[i].Last = c[i].Session != "" && i == len(c)-1
		}
	}
	u.left = turnsLeft(u.n, int(math.RoundToEven(float64(rows)/float64(len(u.conversations)))))
	u.place = nil
}

// turnsLeft is how many turns each of n users still has to send of the conversation that it is in when a loop begins, the
// users in the order of their first turns. The mean conversation has so many turns; the first user begins a new one.
//
// It is AIPerf's assignment (src/aiperf/timing/strategies/user_centric_rate.py): ages evenly over the time from a
// conversation's first turn to its last, dealt out in an order that mixes old and young.
func turnsLeft(n, turns int) []int {
	left := make([]int, n)
	left[0] = turns
	life := max(1, turns-1)
	step := 0 // of the order, where n and life share a factor: the least above 1 that shares none with n
	if gcd(n, life) > 1 {
		step = min(2, n-1)
		for gcd(n, step) > 1 {
			step++
		}
	}
	for i := 1; i < n; i++ {
		age := (n - i) * life
		slot := age % n
		if step > 0 {
			slot = i * step % n
		}
		left[n-slot] = life - age/n
	}
	return left
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// A user plays a conversation.
type user struct {
	rows []trace.Record // the turns left
	pass int64
}

// rows yields the turns of all users, without an end.
func (u *users) rows() func() (trace.Record, error) {
	all := make([]user, u.n)
	i, begun := 0, 0
	return func() (trace.Record, error) {
		s := &all[i%u.n]
		if len(s.rows) == 0 {
			s.rows = u.conversations[begun%len(u.conversations)]
			s.pass = int64(begun / len(u.conversations))
			if i > 0 && i < u.n {
				s.rows = s.rows[max(0, len(s.rows)-u.left[i]):]
			}
			begun++
		}
		r := s.rows[0]
		s.rows = s.rows[1:]
		r.Pass = s.pass
		i++
		return r, nil
	}
}

// turnGap returns the time between two turns of a user.
func (o *Options) turnGap() time.Duration {
	return time.Duration(math.Round(float64(o.Users) / o.Rate * float64(time.Second)))
}
