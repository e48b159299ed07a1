//go:build peers

package peers_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// A body is the body of a request.
type body struct {
	Messages  []message       `json:"messages"`
	Tools     json.RawMessage `json:"tools"`
	MaxTokens int             `json:"max_tokens"`
	Stream    bool            `json:"stream"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// between is a proxy in front of the engine that keeps the bodies of requests by id.
func between(t *testing.T, engine string) (address string, bodies func() map[string]body) {
	t.Helper()
	var mu sync.Mutex
	kept := map[string]body{}
	to := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: engine})
	to.FlushInterval = -1 // each chunk as it comes
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if id := r.Header.Get("X-Request-Id"); err == nil && r.Method == http.MethodPost {
			var b body
			if err := json.Unmarshal(text, &b); err != nil {
				t.Errorf("%s: want JSON, got %.200s: %v", id, text, err)
			}
			mu.Lock()
			kept[id] = b
			mu.Unlock()
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		to.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), func() map[string]body {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(kept)
	}
}
