//go:build linux

package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"replayd/bench/lab"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 5 + lab.Tail {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
		}
	}))
	defer server.Close()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	plan := lab.Plan{URL: server.URL, Streams: 3, Requests: 20, Tokens: 5, BodyBytes: 100, Out: filepath.Join(dir, "out"), CA: ca}
	var out strings.Builder
	if err := run(t.Context(), plan, &out); err != nil {
		t.Fatal(err)
	}
	var spent lab.Spent
	if err := json.Unmarshal([]byte(out.String()), &spent); err != nil || spent.Tokens != 100 || spent.Requests != 20 {
		t.Errorf("want 100 tokens of 20 requests, got %s, %v", out.String(), err)
	}
	seen, err := lab.ReadLines[lab.Seen](plan.Out)
	if err != nil || len(seen) != 20 {
		t.Fatalf("want 20 requests, got %d, %v", len(seen), err)
	}
	for i, s := range seen {
		if s.ID != fmt.Sprintf("nethttp/0/%d", i) || len(s.Chunks) != 5 || s.Chunks[0] < s.Start {
			t.Errorf("want 5 chunks after the start of request %d, got %+v", i, s)
		}
	}
	plan.Tokens = 6
	if err := run(t.Context(), plan, &out); err == nil {
		t.Error("want an error of answers that are too short, got none")
	}
}
