package daemon

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/comparison"
	"replayd/internal/config"
)

// The evidence outlives replayd, unless something that it depends on has changed, or its file is damaged.
func TestComparisonState(t *testing.T) {
	var kept []byte
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	life := func(t *testing.T, change func(w *world, c *config.Config)) (first, last comparison.Status, log string) {
		synctest.Test(t, func(t *testing.T) {
			w, _, conf := twoServers(t, 1)
			w.dir = dir
			conf.Workloads[0].Trace.Path = w.put(paced(20, 100))
			conf.State.Path = path
			change(w, &conf)
			w.start(conf, true)
			first = w.compared()
			if n := w.page().Sum("replayd_comparison_pairs_total") + w.page().Sum("replayd_comparison_blocks_total"); n != 0 {
				t.Errorf("the counters of a new process begin at %v", n)
			}
			pass(61 * time.Second)
			last = w.compared()
			w.end()
			log = w.log.String()
		})
		return first, last, log
	}
	same := func(*world, *config.Config) {}
	_, before, log := life(t, same)
	if !strings.Contains(log, "there is no state file yet") {
		t.Errorf("the log is %s", log)
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, last, _ := life(t, same)
	if p := first.Judgment.Pairs; !first.Epoch.Equal(before.Epoch) || p.Judged < before.Judgment.Pairs.Judged-30 || first.Judgment.Verdict != before.Judgment.Verdict {
		t.Errorf("it goes on with %+v %s of %v, want %+v %s of %v", p, first.Judgment.Verdict, first.Epoch, before.Judgment.Pairs, before.Judgment.Verdict, before.Epoch)
	}
	if last.Judgment.Pairs.Judged < first.Judgment.Pairs.Judged+500 {
		t.Errorf("%d pairs, then %d", first.Judgment.Pairs.Judged, last.Judgment.Pairs.Judged)
	}
	const newerState = `{"version":3,"comparisons":[]}`
	damaged := []string{
		"version: want 2, got 3", "want at most 67108864 bytes", "the state file cannot be used", "sha256: want that of the file",
		"tests: want 6, got 7",
	}
	for want, change := range map[string]func(w *world, c *config.Config){
		"of other options, rules, targets or rows": func(w *world, c *config.Config) { c.Workloads[0].Trace.Path = w.put(paced(21, 90)) },
		"serves another model":                     func(w *world, _ *config.Config) { w.lists("other") },
		"the comparison goes on":                   func(_ *world, c *config.Config) { c.Drain++ },
		"version: want 2, got 3":                   func(*world, *config.Config) { overwrite(t, path, []byte(newerState)) },
		"want at most 67108864 bytes": func(*world, *config.Config) {
			overwrite(t, path, append(bytes.Clone(kept), make([]byte, 64<<20)...))
		},
		"the state file cannot be used": func(*world, *config.Config) { overwrite(t, path, kept[:len(kept)/2]) },
		"sha256: want that of the file": func(*world, *config.Config) {
			overwrite(t, path, []byte(strings.Replace(string(kept), `"judged":`, `"judged":-`, 1)))
		},
		"tests: want 6, got 7": func(*world, *config.Config) { // sealed, and no comparison's all the same
			text, _, _ := strings.Cut(string(kept), `,"sha256":`)
			text = strings.Replace(text, `"tests":[`, `"tests":[{},`, 1)
			overwrite(t, path, fmt.Appendf(nil, "%s,\"sha256\":\"%x\"}\n", text, sha256.Sum256([]byte(text))))
		},
	} {
		overwrite(t, path, kept)
		first, last, log := life(t, change)
		aside, err := os.ReadFile(path + ".unreadable")
		if set := err == nil; set != slices.Contains(damaged, want) {
			t.Errorf("%s: kept beside the state: %t, %v", want, set, err)
		}
		if want == "sha256: want that of the file" && !strings.Contains(string(aside), `"judged":-`) {
			t.Errorf("want the damaged evidence beside the state, got %s", aside)
		}
		if err := os.RemoveAll(path + ".unreadable"); err != nil {
			t.Fatal(err)
		}
		if goesOn := first.Judgment.Pairs.Judged > 0; goesOn != (want == "the comparison goes on" || want == "serves another model") {
			t.Errorf("%s: it goes on: %t", want, goesOn)
		}
		if !strings.Contains(log, want) {
			t.Errorf("want %q in the log, got %s", want, log)
		}
		if want == "serves another model" && last.Epoch.Equal(before.Epoch) {
			t.Error("the evidence of another model was kept")
		}
	}
}

func overwrite(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
