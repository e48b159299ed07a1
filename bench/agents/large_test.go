//go:build bench && linux

package agents_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

// TestLarge shows what replayd takes for a long prompt, for many sessions at once and for a session of many turns.
func TestLarge(t *testing.T) {
	s, traces, steal := rig.ReadSize(t), folder(t), rig.WatchSteal(t)
	copies, turns, wait := 12, 60, 10*time.Millisecond
	if s.Full {
		copies, turns, wait = 200, 600, time.Second
	}
	long := filepath.Join(traces, "trace_0517.json")
	table := &lab.Table{
		Title: fmt.Sprintf("Recorded sessions, all begun at once, waits limited to %v and answers to %d tokens of 2 ms, against a simulated engine on the same cores. Late is from due to the first byte; the first requests of the sessions are apart.",
			wait, maxOutput),
		Head: []string{
			"sessions", "requests", "longest input", "million input tokens", "s", "CPU s", "peak RSS MiB", "messages, MiB", "late p50, ms", "p99", "first requests p50", "p99",
		},
	}
	for _, c := range []struct {
		name, path string
		sessions   int
	}{
		{"trace_0517 alone", long, 1},
		{fmt.Sprintf("%d at once, copies of weka/", copies), copied(t, traces, copies), copies},
		{fmt.Sprintf("one of %d turns, 12 sub-agents", turns), made(t, turns, 12), 1},
	} {
		table.Add(append([]string{c.name}, play(t, c.path, wait, c.sessions)...)...)
	}
	table.Note("Messages: buffers of requests that are built ahead (8 MiB at most, but one), are being sent, or are kept for reuse; by a heap profile every second.")
	rig.Results(t, "agents-large", steal, table)
}

// maxOutput limits the answers, so that the machine has time for the prompts.
const maxOutput = 50

// copied writes sessions of the folder, in turns, until there are so many, each with an id of its own.
func copied(t *testing.T, traces string, sessions int) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(traces, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("want sessions in %s, got none: %v", traces, err)
	}
	id := regexp.MustCompile(`"id":\s*"[^"]*"`)
	var text bytes.Buffer
	for i := range sessions {
		one, err := os.ReadFile(files[i%len(files)])
		if err != nil {
			t.Fatal(err)
		}
		at := id.FindIndex(one) // that of the session comes first
		one = bytes.Join([][]byte{one[:at[0]], fmt.Appendf(nil, `"id":"copy %d"`, i), one[at[1]:]}, nil)
		text.Write(bytes.ReplaceAll(one, []byte("\n"), nil))
		text.WriteByte('\n')
	}
	return outside.Write(t, t.TempDir(), "copies.jsonl", text.String())
}

// made writes a session in which each turn adds 256 tokens. So many sub-agents of ten requests run beside it, a few turns each.
func made(t *testing.T, turns, agents int) string {
	t.Helper()
	const adds, block = 256, 64
	var text strings.Builder
	text.WriteString(`{"schema":"replayd.sessions.v1","block_size":64}` + "\n")
	rows, fresh := 0, 0
	row := func(agent string, after []int, ids []int) int {
		var edges, blocks []string
		for _, p := range after {
			edges = append(edges, fmt.Sprintf(`{"row":%d,"wait":20}`, p))
		}
		for _, id := range ids {
			blocks = append(blocks, strconv.Itoa(id))
		}
		fmt.Fprintf(&text, `{"row":%d,"after":[%s]`, rows, strings.Join(edges, ","))
		if len(after) == 0 {
			text.WriteString(`,"timestamp":0`)
		}
		if agent != "" {
			fmt.Fprintf(&text, `,"agent_id":%q`, agent)
		}
		fmt.Fprintf(&text, `,"input_length":%d,"output_length":20,"hash_ids":[%s],"session_id":"made up"}`+"\n", block*len(ids), strings.Join(blocks, ","))
		rows++
		return rows - 1
	}
	grow := func(ids []int) []int {
		for range adds / block {
			ids = append(ids, fresh)
			fresh++
		}
		return ids
	}
	var ids []int
	var after []int
	ends := map[int][]int{} // by turn: the sub-agents' last rows that it waits for
	for turn := range turns {
		ids = grow(ids)
		last := row("", append(after, ends[turn]...), ids)
		after = []int{last}
		if every := turns / agents; turn%every == every/2 {
			own, before := []int(nil), last
			for range 10 {
				own = grow(own)
				before = row(fmt.Sprintf("agent %d", turn/every), []int{before}, own)
			}
			ends[min(turns-1, turn+5)] = append(ends[min(turns-1, turn+5)], before)
		}
	}
	return outside.Write(t, t.TempDir(), "made.jsonl", text.String())
}

// play plays a trace once with a daemon and returns the cells of the table.
func play(t *testing.T, path string, wait time.Duration, sessions int) []string {
	t.Helper()
	stats, rows, begins := open(t, path)
	dir := t.TempDir()
	clipped := map[lengths]int{}
	for l, n := range rows {
		clipped[lengths{l.input, min(l.output, maxOutput)}] += n
	}
	e := serveEngine(t, dir, "--itl", "2ms")
	listen, records := outside.Address(t), filepath.Join(dir, "records.jsonl")
	config := outside.Write(t, dir, "replayd.yaml", fmt.Sprintf(`
targets: [{name: sim, url: %q}]
workloads:
  - {name: w, trace: {path: %q, max_output: %d, over_limit: clip}, arrival: sessions, sessions_at_once: %d, turn_delay: {max: %v}, repeat: {mode: once}, lanes: 2048, max_wait: 0s}
records: {path: %q}
web: {enable_pprof: true}
`, e.url, path, maxOutput, sessions, wait, records))
	p := outside.Start(t, filepath.Join(dir, "serve.out"), binary, "serve", "--config", config, "--web.listen-address", listen)
	p.Ready(t, http.DefaultClient, "http://"+listen+"/-/ready")
	messages, peak := watch(t, p, "http://"+listen, stats.Requests)
	p.Term(t, time.Minute)
	c := side{log: e.end(t)}
	if len(c.log) != stats.Requests || held(t, c.log, clipped) != stats.Requests {
		t.Errorf("%s: want %d requests with the lengths of the rows, got %d, of which %d have them", path, stats.Requests, len(c.log), held(t, c.log, clipped))
	}
	firsts, others := lateness(t, records, begins)
	return []string{
		strconv.Itoa(stats.Requests), strconv.Itoa(int(stats.Input.Max)), lab.Number(float64(stats.Input.Sum) / 1e6),
		lab.Number(c.span().Seconds()),
		lab.Number(cost(p).Seconds()), lab.Number(float64(peak) / (1 << 20)), lab.Number(float64(messages) / (1 << 20)),
		lab.Number(others.Quantile(0.5)), lab.Number(others.Quantile(0.99)), lab.Number(firsts.Quantile(0.5)), lab.Number(firsts.Quantile(0.99)),
	}
}

// watch looks every second until all requests have ended, and returns the most bytes of message buffers and the peak memory.
func watch(t *testing.T, p *outside.Process, url string, requests int) (most, peak int64) {
	t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for deadline := time.Now().Add(8 * time.Minute); ; {
		most = max(most, buffers(t, url))
		_, peak, err := lab.Memory(p.Cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		page, err := outside.Scrape(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		ended := page.Sum("replayd_requests_total") + page.Sum("replayd_requests_dropped_total")
		switch {
		case ended >= float64(requests):
			return most, peak
		case time.Now().After(deadline):
			t.Fatalf("want %d requests, %v have ended", requests, ended)
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// bufferSample is a line of a heap profile: objects and bytes in use, then those that were ever allocated.
var bufferSample = regexp.MustCompile(`^\d+: (\d+) \[\d+: \d+\] @`)

// buffers returns the bytes of message buffers in use, by the heap profile of the last garbage collection.
func buffers(t *testing.T, url string) (bytes int64) {
	t.Helper()
	status, body, err := outside.Call(t.Context(), http.DefaultClient, http.MethodGet, url+"/debug/pprof/heap?debug=1")
	if err != nil || status != http.StatusOK {
		t.Fatalf("want a heap profile, got %d, %v", status, err)
	}
	lines, now := bufio.NewScanner(strings.NewReader(string(body))), int64(0)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		if m := bufferSample.FindStringSubmatch(lines.Text()); m != nil {
			now, _ = strconv.ParseInt(m[1], 10, 64)
		} else if strings.Contains(lines.Text(), "replay.(*buffers).get") {
			bytes += now
			now = 0
		}
	}
	return bytes
}
