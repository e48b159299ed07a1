package daemon

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/canary"
)

// A file of the version before the checksum is read and continued, and written with a checksum.
func TestUnsealedStateGoesOn(t *testing.T) {
	for _, mode := range []string{"verdict", "watch"} {
		t.Run(mode, func(t *testing.T) {
			before, err := os.ReadFile(filepath.Join("..", "comparison", "testdata", "state_v1_"+mode+".json"))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "state")
			identity := regexp.MustCompile(`"identity":"[0-9a-f]+"`)
			life := func(text []byte) (judged int64, log string) {
				if text != nil {
					overwrite(t, path, text)
				}
				synctest.Test(t, func(t *testing.T) {
					w, _, conf := twoServers(t, 1)
					w.dir = dir
					conf.Workloads[0].Trace.Path = w.put(paced(20, 100))
					conf.Comparisons[0].Mode, conf.State.Path = canary.Mode(mode), path
					conf.Comparisons[0].ToleranceQueued, conf.Comparisons[0].ToleranceBad = 0.05, 0.005 // those of the file
					w.start(conf, true)
					judged = w.compared().Judgment.Pairs.Judged
					if c := w.compared(); c.Epochs != 1 || c.Version != "" {
						t.Errorf("want one epoch about no version, got %d about %q", c.Epochs, c.Version)
					}
					pass(10 * time.Second)
					w.end()
					log = w.log.String()
				})
				return judged, log
			}
			life(nil)
			now, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			before = identity.ReplaceAll(before, identity.Find(now)) // it names the folder of the trace
			judged, log := life(before)
			if judged != 2380 || !strings.Contains(log, "the comparison goes on with its kept evidence") {
				t.Errorf("it goes on with %d pairs, want 2380; the log is %s", judged, log)
			}
			after, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var state struct {
				Comparisons []struct{ Evidence canary.Snapshot }
			}
			err = json.Unmarshal(after, &state)
			if err != nil || !bytes.HasPrefix(after, []byte(`{"version":2,`)) || state.Comparisons[0].Evidence.Pairs.Judged <= 2380 {
				t.Errorf("then the file is %s, %v", after, err)
			}
			damaged := bytes.Replace(before, []byte(`"judged":`), []byte(`"judged":-`), 1)
			const anew = "the kept evidence is damaged: the comparison begins anew, and it is kept as"
			if judged, log := life(damaged); judged != 0 || !strings.Contains(log, anew) {
				t.Errorf("it goes on with %d pairs of a damaged file; the log is %s", judged, log)
			}
			aside, err := os.ReadFile(path + ".unreadable")
			if err != nil || !bytes.Equal(aside, damaged) {
				t.Errorf("want the damaged file beside the state, got %s, %v", aside, err)
			}
		})
	}
}
