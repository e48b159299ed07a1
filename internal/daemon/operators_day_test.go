package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/config"
	"replayd/internal/replay"
	"replayd/internal/sim"

	"replayd/test/outside"
)

// engineLog has the ids of the requests in an engine's log.
type engineLog struct {
	mu  sync.Mutex
	ids map[string]int
}

func (l *engineLog) Write(line []byte) (int, error) {
	var e sim.LogEntry
	if err := json.Unmarshal(line, &e); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids[e.ID]++
	return len(line), nil
}

// A mounted is a folder as Kubernetes mounts a ConfigMap: its files are links into a link to a folder, which is swapped.
type mounted struct {
	*testing.T
	dir    string
	swaps  int
	config string
}

// put replaces all files at once.
func (m *mounted) put(text string) {
	m.Helper()
	m.config, m.swaps = text, m.swaps+1
	data := fmt.Sprintf("..%d", m.swaps)
	for _, err := range []error{
		os.Mkdir(filepath.Join(m.dir, data), 0o755),
		os.WriteFile(filepath.Join(m.dir, data, "replayd.yaml"), []byte(text), 0o600),
		os.Symlink(data, filepath.Join(m.dir, "..new")),
		os.Rename(filepath.Join(m.dir, "..new"), filepath.Join(m.dir, "..data")),
	} {
		if err != nil {
			m.Fatal(err)
		}
	}
}

// An operator's day: a mounted configuration is edited twelve times, four times wrongly, and once names a trace that comes
// later. The engine gets each row of each plan once, as if nobody had touched anything.
//
// OPERATORS_HOURS is the length of the day.
func TestOperatorsDay(t *testing.T) {
	hours := 3
	if n, err := strconv.Atoi(os.Getenv("OPERATORS_HOURS")); err == nil {
		hours = n
	}
	day := time.Duration(hours) * time.Hour
	dir := t.TempDir()
	trace := func(name string, n int, every time.Duration) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"timestamp": %d, "input_length": 20, "output_length": 4}`+"\n", time.Duration(i)*every/time.Millisecond)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	hour, half, first := trace("hour.jsonl", 240, 15*time.Second), trace("half.jsonl", 20, 20*time.Second), trace("once.jsonl", 60, time.Minute)
	base := fmt.Sprintf(`
targets:
  - {name: t, url: "http://sim:1", metrics: {interval: 0s}}
workloads:
  - {name: hourly, trace: {path: %s}, repeat: {every: 1h}}
  - {name: started, trace: {path: %s}, repeat: {every: 1h, align: start}}
  - {name: cron, trace: {path: %s}, repeat: {mode: cron, cron: "*/30 * * * *"}}
  - {name: once, trace: {path: %s}, repeat: {mode: once}}
  - {name: closed, trace: {path: %s}, repeat: {mode: loop}, arrival: concurrency, lanes: 1}
`, hour, hour, half, first, half)
	with := func(old, now string) string { return strings.ReplaceAll(base, old, now) }
	late := filepath.Join(dir, "late.jsonl")
	edits := []struct {
		text  string
		wrong bool
	}{
		{with("interval: 0s}", "interval: 0s}, timeouts: {total: 2m}"), false},
		{with("mode: once}", "mode: once}, slo: {ttft: 1s}"), false},
		{base + "workloads: []\n", true},
		{base, false},
		{with("arrival:", "slo: {ttft: 2s}, arrival:"), false},
		{with("lanes: 1", "lanez: 1"), true},
		{base + "---\n" + base, true},
		{"drain: 10s\n" + base, false},
		{with(first, late), true},
		{with("every: 1h}", "every: 1h}, slo: {objective: 0.9}"), false},
		{with("mode: cron", "mode: cron, timezone: UTC"), false},
		{with("align: start}", "align: start}, guard: {error_ratio: 0.9}"), false},
	}
	synctest.Test(t, func(t *testing.T) {
		log := &engineLog{ids: map[string]int{}}
		o := sim.Defaults()
		o.TTFT, o.ITL, o.Log = 10*time.Second, time.Millisecond, log
		e, err := sim.New(o)
		if err != nil {
			t.Fatal(err)
		}
		wire, server := outside.NewPipes(), e.Server()
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(wire) })
		defer serving.Wait()
		defer server.Close()

		m := &mounted{T: t, dir: dir}
		m.put(base)
		path := filepath.Join(dir, "replayd.yaml")
		if err := os.Symlink(filepath.Join("..data", "replayd.yaml"), path); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(path, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var f finished
		b := keepFile(t, c, path, func(o *Options) { o.Dial, o.Observers = wire.Dial, []replay.Observer{&f} })
		begin := time.Now()
		for i, edit := range edits {
			<-time.After(time.Until(begin.Add(day/13*time.Duration(i+1) + time.Duration(i*7919)*time.Millisecond)))
			m.put(edit.text)
			<-time.After(30 * time.Second)
			families, err := b.reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				if f.GetName() == "replayd_config_last_reload_successful" && (f.GetMetric()[0].GetGauge().GetValue() == 1) == edit.wrong {
					t.Errorf("edit %d: want it refused: %v", i, edit.wrong)
				}
			}
		}
		<-time.After(time.Until(begin.Add(day + time.Minute)))
		b.stop()
		<-b.over
		delete(log.ids, "replayd/probe")
		rows := map[string]int{}
		for id, n := range log.ids {
			if n > 1 {
				t.Errorf("%s was sent %d times", id, n)
			}
			rows[id[:strings.LastIndexByte(id, '/')]]++
		}
		loops := map[string][]string{}
		for loop := range rows {
			name, _, _ := strings.Cut(loop, "/")
			loops[name] = append(loops[name], loop)
		}
		for name, want := range map[string][2]int{"hourly": {hours + 1, 240}, "started": {hours + 1, 240}, "cron": {2*hours + 1, 20}, "once": {1, 60}} {
			of := loops[name]
			slices.Sort(of)
			if len(of) != want[0] {
				t.Errorf("%s: want %d loops, got %v", name, want[0], of)
			}
			whole := 0
			for _, loop := range of {
				if rows[loop] == want[1] {
					whole++
				}
			}
			if whole < want[0]-2 { // the first may be joined, and the last is cut
				t.Errorf("%s: want %d whole loops of %d rows, got %v", name, want[0]-2, want[1], rows)
			}
		}
		if n := len(f.all); n != len(log.ids) {
			t.Errorf("%d requests ended here, and the engine has %d", n, len(log.ids))
		}
		t.Logf("%d requests", len(f.all))
	})
}
