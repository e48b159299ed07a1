package sim

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// last is the newest entry of a log.
func last(t *testing.T, log *bytes.Buffer) (e LogEntry) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(log.Bytes()), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// The log tells which body came, by its hash, and how many messages a chat has, refused ones too.
func TestLogTellsBodies(t *testing.T) {
	var log bytes.Buffer
	o := Defaults()
	o.Log = &log
	simulate(t, o, func(b bench) {
		long := `{"role":"user","content":"` + text("a", 500) + `"}` // long enough to be lifted out before it is parsed
		for _, c := range []struct {
			path, body string
			messages   int
		}{
			{pathChat, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},` + long + `],"max_tokens":1}`, 3},
			{pathCompletions, completion("a", 1), 0},
			{pathChat, `{"messages":[{"role":"user","content":"a"}],"n":2}`, 1},
			{pathChat, `no JSON`, 0},
			{pathChat, ``, 0},
		} {
			b.post(b.Context(), c.path, "", c.body)
			synctest.Wait()
			sum := sha256.Sum256([]byte(c.body))
			want := hex.EncodeToString(sum[:])[:12]
			if e := last(b.T, &log); e.BodySHA256 != want || e.Messages != c.messages {
				b.Errorf("%.40s: want %s and %d messages, got %s and %d", c.body, want, c.messages, e.BodySHA256, e.Messages)
			}
		}
	})
}

// A client that leaves is in the log at that instant, with what had been made for it by then.
func TestLogOfThoseWhoLeave(t *testing.T) {
	o := Defaults()
	o.Slots, o.PrefillRate, o.DecodeRate, o.CacheTokens = 1, 1000, 10, 0 // prefill 100 ms, then a token each 100 ms
	whole := `{"prompt":"` + text("a", 100) + `","max_tokens":50,"ignore_eos":true}`
	for _, c := range []struct {
		name, body string
		leaves     time.Duration
		tokens     int
		status     int
	}{
		{"in prefill", completion(text("a", 100), 50), 50 * time.Millisecond, 0, 200},
		{"in decode", completion(text("a", 100), 50), 1111 * time.Millisecond, 11, 200},
		{"in one piece", whole, 1111 * time.Millisecond, 11, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			o.Log = &log
			simulate(t, o, func(b bench) {
				ctx, cancel := context.WithTimeout(b.Context(), c.leaves)
				defer cancel()
				b.post(ctx, pathCompletions, "w/0/7", c.body)
				synctest.Wait()
				if log.Len() == 0 {
					b.Fatal("nothing is logged when the client has left")
				}
				e := last(b.T, &log)
				if got := time.Duration(e.End - e.Arrival); e.Outcome != Gone || got != c.leaves || e.OutputTokens != c.tokens || e.Status != c.status || e.ID != "w/0/7" {
					b.Errorf("want gone after %v with %d tokens and status %d, got %v: %+v", c.leaves, c.tokens, c.status, got, e)
				}
			})
		})
	}
}

// A chunk that could not be written to a client that had left does not count as its.
func TestLogCountsWhatWasWritten(t *testing.T) {
	var log bytes.Buffer
	o := Defaults()
	o.TTFT, o.ITL, o.Log = 100*time.Millisecond, 100*time.Millisecond, &log
	simulate(t, o, func(b bench) {
		body := completion("a", 50)
		conn := b.connect("POST /v1/completions HTTP/1.1\r\nHost: sim\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
		lines := bufio.NewScanner(conn)
		for chunks := 0; chunks < 2 && lines.Scan(); { // and no more: the third waits in its write
			if strings.Contains(lines.Text(), `"text":"`) {
				chunks++
			}
		}
		pass(time.Second)
		_ = conn.Close()
		synctest.Wait()
		if e := last(b.T, &log); e.Outcome != Gone || e.OutputTokens != 2 {
			b.Errorf("want gone with 2 tokens, got %+v", e)
		}
	})
}
