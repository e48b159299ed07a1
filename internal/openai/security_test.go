package openai

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/chunk"
	"replayd/internal/openai/internal/wire"
)

const canary = `kanarie/+"<&>` + "\u00e9" + `kanarie`

// withKey returns a client whose credentials are the canary, after it has built one message.
func withKey(t *testing.T, target Target) *Client {
	t.Helper()
	target.HTTP.Authorization = &config.Authorization{Type: "Bearer", Credentials: canary}
	target.ExtraBody = map[string]any{"a": []any{map[string]any{"api_key": "kanarie-body"}}, "tokens": 3, "tokenizer": "Qwen/Qwen3"}
	c := newClient(t, target)
	message(t, c)
	return c
}

// The credentials are masked in error texts in every encoding. A text that is cut inside the credentials shows
// fewer than four bytes of the credentials.
func TestWordsHaveNoCredentials(t *testing.T) {
	c := withKey(t, Target{})
	for name, said := range map[string]string{
		"plain": canary, "JSON": `kanarie/+\"\u003c\u0026\u003e` + "\u00e9" + "kanarie", "PHP's JSON": `kanarie\/+\"<&>` + "\u00e9" + "kanarie",
		"a query": "kanarie%2F%2B%22%3C%26%3E%C3%A9kanarie", "a path": "kanarie%2F+%22%3C&%3E%C3%A9kanarie", "a Location": "kanarie/+%22%3C&%3E%C3%A9kanarie",
		"HTML": "kanarie/+&#34;&lt;&amp;&gt;\u00e9kanarie", "Go": `kanarie/+\"<&>` + "\u00e9" + "kanarie", "extra_body's": "kanarie-body",
	} {
		if got := c.Redact("bad key " + said + ", sorry"); got != "bad key <secret>, sorry" {
			t.Errorf("%s: got %q", name, got)
		}
		for n := range len(said) + 1 {
			if got := c.front([]byte(said), n); strings.Contains(got, "kana") {
				t.Errorf("%s, cut at %d: got %q", name, n, got)
			}
		}
	}
	if got := c.front([]byte("stop"), 64); got != "stop" {
		t.Errorf("want what is no secret as it is, got %q", got)
	}
	if got := c.Redact("maximum of 3 tokens"); got != "maximum of 3 tokens" {
		t.Errorf("want what is no secret as it is, got %q", got)
	}
}

// Broken JSON that begins like a chunk may contain text of an answer, so only its length is shown. Other data is
// shown up to 64 bytes.
func TestChunksAreNotShown(t *testing.T) {
	c := withKey(t, Target{})
	for given, want := range map[string]string{
		`{"choices":[{"delta":{"content":"private`: "a broken one of 40 bytes", "hello": `"hello"`, "": `""`,
		strings.Repeat("x", 100): `"` + strings.Repeat("x", 64) + `"`,
	} {
		if got := c.notJSON([]byte(given)); got != want {
			t.Errorf("%q: want %s, got %s", given, want, got)
		}
	}
}

// The size of a secret file is limited, and a line break in the file cannot inject a header.
func TestSecretFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("a\r\nX-Injected: 1\r\n\r\nGET / HTTP/1.1")
	target := Target{Options: Options{HTTP: config.HTTPClientConfig{Authorization: &config.Authorization{
		Type:            "Bearer",
		CredentialsFile: file,
	}}}}
	if m := composed(t, newClient(t, target)); !strings.Contains(m, "Bearer a") || strings.Contains(m, "\nX-Injected") || strings.Contains(m, "\nGET /") {
		t.Errorf("a header was smuggled in:\n%s", m)
	}
	refused := func(want string) {
		t.Helper()
		target.URL, target.API, target.Output = "test", Chat, OutputMax
		if _, err := New(target); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	put(strings.Repeat("x", maxSecret+1))
	refused("want at most 65536 bytes, got more")
	put(" \n")
	refused("want a value, got an empty file")
	if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	refused("want a file, got a directory")
}

// Model names from a server go into requests, logs and a label. Names that contain the credentials, are too long
// or cannot be shown as they are are refused: requests need them byte for byte.
func TestModelsOfAHostileServer(t *testing.T) {
	c := withKey(t, Target{})
	for _, id := range []string{canary, "x" + canary, strings.Repeat("x", chunk.MaxName+1), "a\x1b[31mb", "a\x07", "a\u202eb", "a\r\nb", "a\xffb"} {
		if _, err := c.Choose([]Model{c.listed(chunk.Model{ID: id})}); err == nil || strings.Contains(err.Error(), "kana") || len(err.Error()) > 200 {
			t.Errorf("%.40q: want an error that does not repeat it, got %v", id, err)
		}
	}
	for _, id := range []string{strings.Repeat("x", chunk.MaxName), "Qwen/Qwen3"} { // extra_body names Qwen/Qwen3
		if _, err := c.Choose([]Model{c.listed(chunk.Model{ID: id})}); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Choose([]Model{c.listed(chunk.Model{ID: canary}), c.listed(chunk.Model{ID: strings.Repeat("y", 1<<20)})}); err == nil || strings.Contains(err.Error(), "kana") || len(err.Error()) > 1000 {
		t.Errorf("several: want an error within bounds and without the key, got %.200v", err)
	}
}

// The number of chunks in a timeline is limited, whatever the timeouts are.
func TestTimelineIsBounded(t *testing.T) {
	l := newClient(t, Target{}).Lane()
	defer l.Close()
	l.chunk.Content = true
	req := measure.Request{Timeline: measure.Timeline{Chunks: make([]time.Duration, maxChunks-1)}}
	l.present.req = &req
	if f := l.present.handle(wire.Arrival{At: time.Now()}); f != nil {
		t.Fatalf("the last chunk: %s", f.text)
	}
	if f := l.present.handle(wire.Arrival{At: time.Now()}); f == nil || f.outcome != measure.BadStream || len(req.Timeline.Chunks) != maxChunks {
		t.Errorf("one more: want bad_stream and %d chunks, got %v and %d", maxChunks, f, len(req.Timeline.Chunks))
	}
}

// By default, a certificate that no trusted CA has signed is refused, and nothing is sent.
func TestTLSIsVerified(t *testing.T) {
	heard := make(chan struct{}, 2)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { heard <- struct{}{} }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // the test provokes handshake errors
	s.StartTLS()
	defer s.Close()
	l := withKey(t, Target{Options: Options{URL: s.URL, Timeouts: limits}}).Lane()
	defer l.Close()
	var req measure.Request
	do(t, l, &req)
	if req.Outcome != measure.ConnectFailed || !strings.Contains(string(req.Error), "certificate") || len(heard) > 0 {
		t.Errorf("want connect and nothing sent, got %s: %s, %d requests", req.Outcome, req.Error, len(heard))
	}
}
