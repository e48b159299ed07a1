//go:build faults

package faults_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/test/outside"
)

// A daemon that is killed at any instant, also while it writes, rotates or
// compresses, leaves record files that are readable up to the last whole line. The
// next daemon leaves no partial line inside a file and appends to what is there.
func TestKills(t *testing.T) {
	kills := outside.Knob(t, "FAULTS_KILLS", 5, strconv.Atoi)
	s := newStage(t, "--ttft", "5ms", "--itl", "1ms")
	trace := filepath.Join(s.Dir, "trace.jsonl")
	var rows strings.Builder
	for at := 0; at < 29_900; at += 5 { // 200 a second, and a loop of 30 s
		fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": 20, "output_length": 3}`+"\n", at)
	}
	outside.Put(t, trace, rows.String())
	random := rand.New(rand.NewPCG(8, 1))
	seen := killTally{}
	var before []string // ids of the records, oldest first
	for n := range kills {
		s.Write(t, s.killConfig(trace, n%4 < 2)) // two lives leave files that the next two compress
		daemon := s.live(t)
		s.dieAt(t, daemon, random, n, &seen)
		ids := killRecords(t, s.Records, &seen)
		goesOn(t, n, before, ids)
		if random.IntN(4) == 0 { // a power cut takes a part of what the kill left
			ids = s.tear(t, random, ids, &seen)
		}
		before = ids
	}
	s.Write(t, s.killConfig(trace, true))
	daemon := s.live(t)
	daemon.Ready(t, &killClient, s.URL()+"/-/ready")
	outside.See(t, s.URL(), "100 requests of the last life", 20*time.Second, func(p outside.Page) bool {
		return p.Sum("replayd_requests_total", "ok") >= 100
	})
	daemon.Term(t, 40*time.Second)
	torn := seen.torn
	ids := killRecords(t, s.Records, &seen)
	if seen.torn != torn {
		t.Error("the last record of a daemon that was stopped is torn")
	}
	goesOn(t, kills, before, ids)
	s.judgeKills(t, daemon.Began, ids)
	t.Logf("%d kills, %d of them before the first record of that life, %d while files changed; %d records at the end; %d last lines were torn by a kill, %d by hand; %d compressions were cut",
		kills, seen.silent, seen.busy, len(ids), seen.torn, seen.cut, seen.parts)
}

// A killTally counts the situations that the kills have met.
type killTally struct {
	silent, busy, torn, cut, parts int
}

func (s *stage) killConfig(trace string, gzip bool) string {
	return fmt.Sprintf(`targets: [{name: sim, url: "http://%s", metrics: {interval: 0s}}]
records: {path: %q, max_bytes: 96KiB, keep: 100000, gzip: %v}
workloads: [{name: w, trace: {path: %q}, repeat: {every: 30s}, prompt: {calibrate: false}}]
`, s.Engine, s.Records, gzip, trace)
}

// live starts the daemon without waiting for it.
func (s *stage) live(t *testing.T) *outside.Process {
	t.Helper()
	s.Lives++
	return outside.Start(t, filepath.Join(s.Dir, fmt.Sprintf("serve%d.out", s.Lives)), binary, "serve", "--config", s.Config, "--web.listen-address", s.Listen)
}

// dieAt kills the daemon: at any instant of its first two seconds, or just when the record files change.
func (s *stage) dieAt(t *testing.T, daemon *outside.Process, random *rand.Rand, n int, seen *killTally) {
	t.Helper()
	was := s.files()
	if n%2 == 0 {
		<-time.After(time.Duration(random.Int64N(int64(2 * time.Second))))
	} else {
		for deadline := time.Now().Add(10 * time.Second); s.files() == was; {
			if time.Now().After(deadline) {
				t.Fatalf("life %d: no record within 10 s", n)
			}
		}
		<-time.After(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
		seen.busy++
	}
	daemon.Signal(t, syscall.SIGKILL)
	daemon.Wait(t, 10*time.Second)
	if s.files() == was {
		seen.silent++
	}
}

// files returns a text that changes when a record file is written.
func (s *stage) files() string {
	info, err := os.Stat(s.Records)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), info.Sys().(*syscall.Stat_t).Ino)
}

// tear cuts the newest file within its last line and returns the remaining ids.
func (s *stage) tear(t *testing.T, random *rand.Rand, ids []string, seen *killTally) []string {
	t.Helper()
	text, err := os.ReadFile(s.Records)
	if err != nil || !strings.HasSuffix(string(text), "\n") {
		return ids // torn already, or missing
	}
	line := len(text) - 1 - strings.LastIndexByte(string(text[:len(text)-1]), '\n')
	if err := os.Truncate(s.Records, int64(len(text)-1-random.IntN(line-1))); err != nil {
		t.Fatal(err)
	}
	seen.cut++
	return ids[:len(ids)-1]
}

// goesOn checks that earlier records are still there, followed by the new ones.
func goesOn(t *testing.T, n int, before, now []string) {
	t.Helper()
	if len(now) < len(before) || !slices.Equal(before, now[:len(before)]) {
		t.Fatalf("life %d: %d records were there before, and are not the first of the %d that are there now", n, len(before), len(now))
	}
}

// judgeKills compares the records with the engine's log: no request was sent twice or recorded without being sent, and
// the last life, which ended in order, has all its records.
func (s *stage) judgeKills(t *testing.T, last time.Time, ids []string) {
	t.Helper()
	log := outside.EngineLog[sim.LogEntry](t, s.Sim, s.Log)
	recorded, sent := map[string]bool{}, map[string]bool{}
	for _, id := range ids {
		recorded[id] = true
	}
	of := 0
	for _, e := range log {
		if sent[e.ID] {
			t.Errorf("%s was sent twice", e.ID)
		}
		sent[e.ID] = true
		if e.Arrival > last.UnixNano() {
			if of++; !recorded[e.ID] {
				t.Errorf("%s: no record of a request of the last life", e.ID)
			}
		}
	}
	if of < 100 {
		t.Errorf("want 100 requests of the last life, got %d", of)
	}
	for _, id := range ids {
		if !sent[id] {
			t.Errorf("%s: a record of a request that the engine never saw", id)
		}
	}
	// The command by which the documents read all files.
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `zcat -f $(ls -rv "$0" "$0".[0-9]*)`, s.Records).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := killIDs(t, "zcat", string(out)); !slices.Equal(got, ids) {
		t.Errorf("zcat of all files in order gives %d records, want the %d", len(got), len(ids))
	}
}
