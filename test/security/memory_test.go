package security_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"replayd/test/machine"
	"replayd/test/outside"
)

// The largest answer, and the largest event of a stream.
const (
	answerBytes = 16<<20 - 64<<10
	eventBytes  = 8<<20 - 64<<10
)

// filled returns an answer of n bytes under a key of the server's choice. Nearly all of it is a list of empty objects,
// which costs a hundred bytes of memory for every three bytes if it is decoded whole.
func filled(n int, key, choices string) []byte {
	const element = "{},"
	begin, end := `{"`+key+`":[`, `{}],"choices":[`+choices+`]}`
	return []byte(begin + strings.Repeat(element, (n-len(begin)-len(end))/len(element)) + end)
}

// A crowd answers several requests with the same bytes. It sends all but the last byte to all of them before the first
// request gets its last byte, so that the client has all answers in memory at once.
type crowd struct {
	kind   string
	answer []byte
	sent   sync.WaitGroup
}

func newCrowd(t *testing.T, size int, kind string, answer []byte) string {
	t.Helper()
	c := &crowd{kind: kind, answer: answer}
	c.sent.Add(size)
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	return s.URL
}

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if r.Method == http.MethodGet || r.Header.Get("X-Request-Id") == "replayd/probe" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[{"id":"m"}],"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`)
		return
	}
	w.Header().Set("Content-Type", c.kind)
	last := len(c.answer) - 1
	_, _ = w.Write(c.answer[:last])
	_ = http.NewResponseController(w).Flush()
	c.sent.Done()
	c.sent.Wait()
	_, _ = w.Write(c.answer[last:])
}

// peak returns the peak memory of a process so far, in MiB.
func peak(t *testing.T, pid int) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	kb, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return float64(kb) / 1024
}

// Answers of any shape cost about their own size, also if a server spells its keys differently from a usual answer.
func TestMemoryOfAnswers(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		machine.Lacks(t, "/proc", err)
	}
	const most = 256 // MiB, the container that the documents recommend
	whole := func(key string) []byte {
		return filled(answerBytes, key, `{"message":{"content":"a"},"finish_reason":"stop"}`)
	}
	stream := func(key string) []byte {
		event := filled(eventBytes, key, `{"delta":{"content":"a"},"finish_reason":"stop"}`)
		data := "data: " + string(event) + "\n\n"
		return []byte(data + data + "data: [DONE]\n\n")
	}
	for name, c := range map[string]struct {
		lanes  int
		kind   string
		answer func(key string) []byte
	}{
		"4 answers": {4, "application/json", whole},
		"8 answers": {8, "application/json", whole},
		"4 streams": {4, "text/event-stream", stream},
		"8 streams": {8, "text/event-stream", stream},
	} {
		t.Run(name, func(t *testing.T) {
			// How much garbage stands at the peak is chance. So the least of three counts where one is above its bound.
			within := func(answer []byte, bound float64) float64 {
				least := attack(t, c.lanes, c.kind, answer)
				for n := 1; n < 3 && least > bound; n++ {
					least = min(least, attack(t, c.lanes, c.kind, answer))
				}
				return least
			}
			bound := math.Inf(1)
			if c.lanes == 4 {
				bound = most
			}
			usual := within(c.answer("a"), bound)
			odd := within(c.answer(`\u0061`), min(bound, 1.5*usual+32))
			t.Logf("peak RSS: %.0f MiB with an escaped key, %.0f with a plain one: %.2f times", odd, usual, odd/usual)
			if max(odd, usual) > bound {
				t.Errorf("want at most %d MiB", most)
			}
			if odd > 1.5*usual+32 {
				t.Errorf("want an escaped key to cost no more than a plain one")
			}
		})
	}
}

// attack makes replayd read several answers at once and returns its peak memory.
func attack(t *testing.T, lanes int, kind string, answer []byte) float64 {
	t.Helper()
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace.jsonl")
	row := `{"timestamp":0,"input_length":8,"output_length":1}` + "\n"
	if err := os.WriteFile(trace, []byte(strings.Repeat(row, lanes)), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := outside.Address(t)
	p := outside.Start(t, filepath.Join(dir, "log"), binary, "run", trace, "--url", newCrowd(t, lanes, kind, answer), "--model", "m",
		"--stream="+strconv.FormatBool(kind == "text/event-stream"), "--lanes", strconv.Itoa(lanes), "--web.listen-address", listen, "--hold", "10m")
	page := outside.See(t, "http://"+listen, "all requests ended", func(p outside.Page) bool {
		return p.Sum("replayd_requests_total") == float64(lanes)
	})
	if ok := page.Sum("replayd_requests_total", "ok"); ok != float64(lanes) {
		t.Errorf("want %d requests ok, got %v", lanes, ok)
	}
	mib := peak(t, p.Cmd.Process.Pid)
	p.Signal(t, syscall.SIGTERM)
	<-p.Done
	return mib
}
