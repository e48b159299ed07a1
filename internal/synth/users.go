package synth

import "math"

// turnsLeft is how many turns the user of a slot still has in the first conversation, so that there is a steady state
// from the first second on: the first slot's user has just come, and the others are in the midst of theirs.
//
// AIPerf gives user i of N, whose conversations last L gaps, an age of (N−i)·L/N gaps, and a place in the round that keeps
// users of like age apart (src/aiperf/timing/strategies/user_centric_rate.py). Both are the same here; but there the first
// request of such a user has no history, here it has all that was virtually said.
func (s *Synthetic) turnsLeft(slot int) int {
	if slot == 0 {
		return math.MaxInt
	}
	users := s.Users
	lifetime := max(1, int(math.Round(s.Turns.Mean))-1)
	return lifetime - (users-s.userAt(slot, lifetime))*lifetime/users
}

// userAt is the number, 1 to Users − 1, of the user who has a slot.
func (s *Synthetic) userAt(slot, lifetime int) int {
	users, step := s.Users, -lifetime%s.Users+s.Users
	if gcd(users, lifetime) > 1 {
		// Then the ages leave places out: users go round by the smallest other step that reaches every place.
		step = 2
		for step < users && gcd(users, step) > 1 {
			step++
		}
		if step >= users {
			step = 1
		}
	}
	// User i stands at place Users − i·step mod Users: look for the i that is at this one.
	return (users - slot) * inverse(step%users, users) % users
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// inverse is the x below n with a·x mod n = 1; a and n have no common divisor, n > 1.
func inverse(a, n int) int {
	x, next, r, rest := 0, 1, n, a
	for rest != 0 {
		q := r / rest
		x, next = next, x-q*next
		r, rest = rest, r-q*rest
	}
	return (x%n + n) % n
}
