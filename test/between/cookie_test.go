//go:build between

package between_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A session stays at its engine by the balancer's cookie, beside a cookie that the application sets with each answer.
func TestCookie(t *testing.T) {
	const sessions, turns = 9, 4 // by turns, an odd number of sessions would change engines with each turn
	programs := install(t)
	var engines []*engine
	for range 2 {
		answered := stream(0, 0, tokens)
		engines = append(engines, newEngine(t, func(w http.ResponseWriter, r *http.Request, c *call) {
			value := strings.ReplaceAll(c.id, "/", "-")
			http.SetCookie(w, &http.Cookie{Name: "app", Value: value, Path: "/"})
			answered(w, r, c)
		}))
	}
	b := start(t, programs, configuration{
		"haproxy", "haproxy", haproxy("balance roundrobin\n  cookie SRV insert indirect nocache", "cookie NAME"),
	}, engines...)
	var rows strings.Builder
	for turn := range turns {
		for session := range sessions {
			const row = `{"timestamp": %d, "session_id": "s%d", "input_length": 20, "output_length": %d}` + "\n"
			fmt.Fprintf(&rows, row, 50*turn, session, tokens)
		}
	}
	p := replay(t, b.url(), rows.String(), "--echo-header", "Set-Cookie")
	if p.code != 0 || p.outcomes()["ok"] != sessions*turns {
		t.Errorf("want %d ok and exit code 0, got %s and %d", sessions*turns, counted(p.outcomes()), p.code)
	}
	at, used := map[int]int{}, map[int]bool{} // sessions to their engines, and the engines that have any
	for i, e := range engines {
		for id := range e.seen("run") {
			row := 0
			if _, err := fmt.Sscanf(id, "run/0/%d", &row); err != nil {
				t.Fatal(err)
			}
			session := row % sessions
			if first, ok := at[session]; ok && first != i {
				t.Errorf("session %d: want all turns at one engine", session)
			}
			at[session], used[i] = i, true
		}
	}
	if len(at) != sessions || len(used) != 2 {
		t.Errorf("want %d sessions at both engines, got %d at %d", sessions, len(at), len(used))
	}
}
