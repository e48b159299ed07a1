//go:build daemon

package daemon_test

import (
	"net/http"
	"testing"

	"replayd/test/outside"
)

// post wants an answer of a status and gives its words.
func post(t *testing.T, url string, want int) string {
	t.Helper()
	status, body, err := outside.Call(t.Context(), http.DefaultClient, http.MethodPost, url)
	if err != nil {
		t.Fatal(err)
	}
	if status != want {
		t.Fatalf("POST %s: want %d, got %d: %s", url, want, status, body)
	}
	return string(body)
}
