//go:build daemon

package daemon_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"
)

var client = http.Client{Timeout: 30 * time.Second}

// call sends a request without a body.
func call(ctx context.Context, method, url string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// post wants an answer of a status and gives its words.
func post(t *testing.T, url string, want int) string {
	t.Helper()
	status, body, err := call(t.Context(), http.MethodPost, url)
	if err != nil {
		t.Fatal(err)
	}
	if status != want {
		t.Fatalf("POST %s: want %d, got %d: %s", url, want, status, body)
	}
	return string(body)
}

// answers says whether a URL gives 200.
func answers(t *testing.T, url string) bool {
	status, _, err := call(t.Context(), http.MethodGet, url)
	return err == nil && status == http.StatusOK
}
