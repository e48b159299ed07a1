//go:build peers

package peers_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/test/machine"
)

// published is the table of concurrencies in the guide: Qwen3-0.6B on eight H200.
var published = map[int]struct{ total, perUser, ttft float64 }{ // tokens/s, tokens/s, ms
	10: {3045, 364.69, 250}, 50: {12890, 326.10, 270}, 100: {22521, 285.03, 347}, 200: {35999, 238.67, 420}, 500: {29836, 128.85, 1129},
}

// The simulated engine, configured like the guide's server, gives the shape of the table, and replayd measures it:
// throughput rises to a knee at 200 and falls beyond it, and latencies only rise. CI uses a tenth of the tokens on an
// engine that is five times as fast.
func TestKnee(t *testing.T) {
	t.Parallel()
	flags, lengths := []string{"--prefill-rate", "62500", "--decode-rate", "165", "--cache-tokens", "30000", "--chunk-tokens", "5"}, "--isl 100 --osl 50"
	if full(t) {
		flags, lengths = []string{"--prefill-rate", "125000", "--decode-rate", "330", "--cache-tokens", "300000", "--chunk-tokens", "10"}, "--isl 1000 --osl 500"
	}
	dir := t.TempDir()
	e := start(t, dir, append([]string{"--model", "m", "--slots", "512", "--batch-cost", "0.0036", "--preempt-cost", "1.2"}, flags...)...)
	// The guide's answers have 493 tokens of 500. With ignore_eos all answers have the requested length.
	line := "run --model m --url " + e.address + " --streaming --concurrency 10,50,100,200,500 --request-count 1000 " + lengths + " --extra-inputs ignore_eos:true"
	c := exec.CommandContext(t.Context(), binary, strings.Fields(line)...)
	c.Dir = dir
	said := &stages{t: t, pids: [2]func() int{func() int { return e.Cmd.Process.Pid }, func() int { return c.Process.Pid }}}
	var warned bytes.Buffer
	c.Stderr = &warned
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// Until Wait, /proc keeps the CPU time of a process that has ended, and the last lines may be read after its end.
	_, copied := io.Copy(said, out)
	if err := errors.Join(copied, c.Wait()); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, warned.String())
	}
	if len(said.marks) != len(concurrencies)+1 {
		t.Fatalf("want a part for each of %v and a summary, got %d\n%s", concurrencies, len(said.marks), said.text.String())
	}
	all := e.received(t)

	total := map[int]float64{}
	var ttft, itl float64
	t.Log("| concurrency | tokens/s | there | per user | there | TTFT | there | ITL | engine's CPU | replayd's CPU |")
	for i, n := range concurrencies {
		part := all[i*1000 : (i+1)*1000]
		if most, _ := crowd(part); most != n {
			t.Errorf("want %d at once at most, got %d", n, most)
		}
		first, last := part[0].Arrival, int64(0)
		tokens := 0
		for _, r := range part {
			last, tokens = max(last, r.End), tokens+r.OutputTokens
		}
		got := artifact[figures](t, dir, fmt.Sprintf("artifacts/concurrency-%d/profile_export_aiperf.json", n))
		total[n] = got.Total.Avg
		if byEngine := float64(tokens) / (float64(last-first) / 1e9); total[n] < 0.95*byEngine || total[n] > 1.05*byEngine {
			t.Errorf("concurrency %d: want the engine's %.0f tokens/s, got %.0f", n, byEngine, total[n])
		}
		wall := said.marks[i+1].at.Sub(said.marks[i].at)
		cpu := [2]float64{}
		for k := range cpu {
			cpu[k] = float64(said.marks[i+1].cpu[k]-said.marks[i].cpu[k]) / float64(wall)
		}
		p := published[n]
		t.Logf("| %d | %.0f | %.0f | %.2f | %.2f | %.1f ms | %.0f ms | %.2f ms | %.0f %% | %.0f %% |", n, total[n], p.total,
			got.PerUser.Avg, p.perUser, got.TTFT.Avg, p.ttft, got.ITL.Avg, 100*cpu[0], 100*cpu[1])
		if cpu[0] > 0.5 && machine.Measures(t, "the engine's CPU time") {
			t.Errorf("concurrency %d: want the engine to use less than half a core, it used %.2f", n, cpu[0])
		}
		// At CI's size the first two TTFTs are some milliseconds, which other work on the machine can change.
		flat := got.TTFT.Avg <= ttft && (full(t) || i > 1) || got.ITL.Avg <= itl
		if flat && machine.Measures(t, "TTFT and ITL by concurrency") {
			t.Errorf("concurrency %d: want TTFT and ITL to rise, got %v after %v ms and %v after %v ms", n, got.TTFT.Avg, ttft, got.ITL.Avg, itl)
		}
		ttft, itl = got.TTFT.Avg, got.ITL.Avg
		if full(t) && (total[n] < 0.9*p.total || total[n] > 1.1*p.total) {
			t.Errorf("concurrency %d: want %.0f tokens/s within a tenth, as published, got %.0f", n, p.total, total[n])
		}
	}
	if !(total[10] < total[50] && total[50] < total[100] && total[100] < total[500] && total[500] < total[200]) {
		t.Errorf("want throughput to rise up to 200 and fall beyond, got %v", total)
	}
	if text := said.text.String(); !strings.Contains(text, "the knee is at concurrency 200, ") || !strings.Contains(text, "; at 500 they fall to ") {
		t.Errorf("want the knee named at 200, got\n%s", text[max(0, len(text)-600):])
	}
	seen{all: all, said: said.text.String()}.recomputed(t, dir)
}

// figures has the figures of profile_export_aiperf.json that are in the table.
type figures struct {
	Total   struct{ Avg float64 } `json:"output_token_throughput"`          // tokens/s
	PerUser struct{ Avg float64 } `json:"output_token_throughput_per_user"` // tokens/s
	TTFT    struct{ Avg float64 } `json:"time_to_first_token"`              // ms
	ITL     struct{ Avg float64 } `json:"inter_token_latency"`              // ms
}

// stages keeps the output of a sweep, with the time and the CPU time of two processes at the start of each part.
type stages struct {
	t     *testing.T
	pids  [2]func() int
	text  strings.Builder
	marks []mark
}

type mark struct {
	at  time.Time
	cpu [2]time.Duration
}

func (s *stages) Write(b []byte) (int, error) {
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "concurrency ") { // a part, or the heading of the summary
			m := mark{at: time.Now()}
			for i, pid := range s.pids {
				m.cpu[i] = used(s.t, pid())
			}
			s.marks = append(s.marks, m)
		}
	}
	return s.text.Write(b)
}

// used returns the CPU time of a process so far: fields 14 and 15 of /proc/PID/stat, in ticks of 10 ms (proc(5)).
func used(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
