package measure

import (
	"encoding/json"
	"testing"
)

// Counts come back from their JSON and add up. A ledger without sessions does not name them.
func TestSessionsOfLedgers(t *testing.T) {
	s := Sessions{
		Begun: 4, InProgress: 1, Outcomes: map[SessionOutcome]int64{SessionOK: 2, SessionCut: 1}, Good: 1, Requests: 9, Prompt: 100, Cached: 90,
		Time: SessionTime{1, 2, 3, 4},
	}
	text, err := json.Marshal(Ledger{Sessions: s})
	if err != nil {
		t.Fatal(err)
	}
	var again Ledger
	if err := json.Unmarshal(text, &again); err != nil || !again.Sessions.Equal(s) || again.Sessions.Time != s.Time || again.Balance() != nil {
		t.Errorf("%s comes back as %+v, %v, %v", text, again.Sessions, err, again.Balance())
	}
	twice := again.Add(again)
	if got := twice.Sessions; got.Begun != 8 || got.Outcomes[SessionOK] != 4 || got.Time != (SessionTime{2, 4, 6, 8}) || twice.Balance() != nil {
		t.Errorf("twice: %+v, %v", got, twice.Balance())
	}
	if text, _ = json.Marshal(Ledger{}); json.Valid(text) && string(text) != `{"expected":0,"in_flight":0,"waiting":0,"outcomes":null,"dropped":null,"filtered":0,"good":0,"eligible":0}` {
		t.Errorf("without sessions: %s", text)
	}
	for name, change := range map[string]func(*Sessions){
		"one more begun": func(s *Sessions) { s.Begun++ },
		"negative":       func(s *Sessions) { s.Requests = -1 },
		"negative time":  func(s *Sessions) { s.Time[Tools] = -1 },
		"more good":      func(s *Sessions) { s.Good = 3 },
		"more cached":    func(s *Sessions) { s.Cached = 101 },
	} {
		bad := s
		if change(&bad); (Ledger{Sessions: bad}).Balance() == nil || bad.Equal(s) {
			t.Errorf("%s: want an error, and another count", name)
		}
	}
}

// Shares of sessions, and where there is nothing to share.
func TestSharesOfSessions(t *testing.T) {
	s := Session{Prompt: 200, Cached: 150, CacheReported: true}
	if share, ok := s.CachedRatio(); !ok || share != 0.75 {
		t.Errorf("cached: got %v, %v", share, ok)
	}
	for _, s := range []Session{{Prompt: 200, Cached: 150}, {CacheReported: true}} {
		if share, ok := s.CachedRatio(); ok {
			t.Errorf("%+v: cached: got %v", s, share)
		}
	}

	all := Sessions{Begun: 12, InProgress: 1, Outcomes: map[SessionOutcome]int64{SessionOK: 6, SessionNotOK: 2, SessionCut: 3}, Good: 4, Prompt: 200, Cached: 50}
	if share, ok := all.Attainment(); !ok || share != 0.5 || all.Eligible() != 8 {
		t.Errorf("attainment: got %v of %d, %v", share, all.Eligible(), ok)
	}
	if _, ok := (Sessions{}).Attainment(); ok {
		t.Error("want no attainment without sessions")
	}
}
