package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// Each server has the HTTP client of its own flag.
func TestCompareClients(t *testing.T) {
	o := NewCompare()
	o.Baseline.URL, o.Candidate.URL = "http://127.0.0.1:1", "http://127.0.0.1:2"
	for side, user := range []string{"old", "new"} {
		o.clients[side] = filepath.Join(t.TempDir(), "client.yaml")
		if err := os.WriteFile(o.clients[side], []byte("basic_auth: {username: "+user+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := o.Config("trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for side, user := range []string{"old", "new"} {
		if auth := c.Targets[side].HTTP.BasicAuth; auth == nil || auth.Username != user {
			t.Errorf("%s: want the user %s, got %v", c.Targets[side].Name, user, auth)
		}
	}
}
