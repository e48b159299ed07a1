package measure

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Sessions counts a workload's sessions up to an instant.
type Sessions struct {
	Begun      int64                    `json:"begun"` // a request of it fell due
	InProgress int64                    `json:"in_progress"`
	Outcomes   map[SessionOutcome]int64 `json:"outcomes"` // ended sessions
	Good       int64                    `json:"good"`     // ended ok within the bound on the makespan

	// Of ok sessions:
	Requests int64       `json:"requests"`
	Prompt   int64       `json:"prompt_tokens"` // of those whose server reports cached tokens
	Cached   int64       `json:"cached_tokens"`
	Time     SessionTime `json:"time_ns"`
}

// IsZero reports whether there was no session.
func (s Sessions) IsZero() bool { return s.Begun == 0 }

// Eligible returns how many sessions the service ended.
func (s Sessions) Eligible() int64 { return s.Outcomes[SessionOK] + s.Outcomes[SessionNotOK] }

// Attainment returns good ÷ eligible. ok is false if nothing was eligible.
func (s Sessions) Attainment() (share float64, ok bool) { return shareOf(s.Good, s.Eligible()) }

// Add adds the sessions of another workload or shard.
func (s Sessions) Add(other Sessions) Sessions {
	return Sessions{
		Begun: s.Begun + other.Begun, InProgress: s.InProgress + other.InProgress, Outcomes: AddUp(s.Outcomes, other.Outcomes),
		Good: s.Good + other.Good, Requests: s.Requests + other.Requests, Prompt: s.Prompt + other.Prompt, Cached: s.Cached + other.Cached,
		Time: s.Time.Add(other.Time),
	}
}

// Equal reports whether two counts are the same.
func (s Sessions) Equal(other Sessions) bool {
	return s.scalars() == other.scalars() && maps.Equal(positive(s.Outcomes), positive(other.Outcomes))
}

// scalars returns all counts but those by outcome.
func (s Sessions) scalars() [6 + int(NumSessionParts)]int64 {
	all := [6 + int(NumSessionParts)]int64{s.Begun, s.InProgress, s.Good, s.Requests, s.Prompt, s.Cached}
	for p, d := range s.Time {
		all[6+p] = int64(d)
	}
	return all
}

func positive[K comparable](counts map[K]int64) map[K]int64 {
	counts = maps.Clone(counts)
	maps.DeleteFunc(counts, func(_ K, n int64) bool { return n == 0 })
	return counts
}

// balance returns an error if counts from outside are negative or do not add up.
func (s Sessions) balance() error {
	scalars := s.scalars()
	for _, n := range append(slices.Collect(maps.Values(s.Outcomes)), scalars[:]...) {
		if n < 0 {
			return fmt.Errorf("sessions: want counts of at least 0, got %d", n)
		}
	}
	if ended := sumOf(s.Outcomes) + s.InProgress; ended != s.Begun {
		return fmt.Errorf("sessions: want begun = ended + in progress, got %d and %d", s.Begun, ended)
	}
	if s.Good > s.Outcomes[SessionOK] || s.Cached > s.Prompt {
		return fmt.Errorf("sessions: want good ≤ ok and cached ≤ prompt tokens, got %d, %d, %d and %d", s.Good, s.Outcomes[SessionOK], s.Cached, s.Prompt)
	}
	return nil
}

// MarshalJSON writes the time of each part in nanoseconds: {"tools":…}.
func (t SessionTime) MarshalJSON() ([]byte, error) {
	parts := []byte{'{'}
	for p, d := range t {
		if p > 0 {
			parts = append(parts, ',')
		}
		parts = fmt.Appendf(parts, "%q:%d", SessionPart(p), int64(d))
	}
	return append(parts, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON writes. A part that is missing is 0.
func (t *SessionTime) UnmarshalJSON(text []byte) error {
	var parts map[string]int64
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	for p := range t {
		t[p] = time.Duration(parts[SessionPart(p).String()])
	}
	return nil
}
