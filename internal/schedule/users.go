package schedule

import (
	"math"

	"replayd/internal/trace"
)

// users share the conversations of a source: row i of a loop is a turn of user i mod n. A user plays one conversation after
// the other; each begins the next one that no other user has begun, and after the last the first comes round again, with a higher
// Record.Pass. A row of no session is a conversation of one turn.
//
// At a loop's start the users are in the midst of things, as if they had been at it for long: only the first begins its first
// conversation from the front, the others where TurnsLeft says. What they leave out counts as having happened.
type users struct {
	n             int
	held          []trace.Record
	conversations [][]int // indices of their rows, in the order of their first rows
	left          []int
}

const maxUsers = 1 << 20

func newUsers(n int, rows []trace.Record) *users {
	u := &users{n: n, held: rows, conversations: group(rows)}
	for _, c := range u.conversations {
		for turn, i := range c {
			rows[i].Turn = turn
		}
		if last := &rows[c[len(c)-1]]; last.Session != "" && !last.Last { // the window ends before the session
			last.Last, rows[c[0]].First = true, false
		}
	}
	u.left = TurnsLeft(n, int(math.RoundToEven(float64(len(rows))/float64(len(u.conversations)))))
	return u
}

// TurnsLeft is how many turns each of n users still has to send of the conversation that it is in when a loop begins, the
// users in the order of their first turns. The mean conversation has so many turns; the first user begins a new one.
//
// It is AIPerf's assignment (src/aiperf/timing/strategies/user_centric_rate.py): ages evenly over the time from a
// conversation's first turn to its last, dealt out in an order that mixes old and young. But there the first request of
// such a user has no history, here it has all that was virtually said.
func TurnsLeft(n, turns int) []int {
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
	rows []int // indices of the turns left
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
		r := u.held[s.rows[0]]
		s.rows = s.rows[1:]
		r.Pass = s.pass
		i++
		return r, nil
	}
}
