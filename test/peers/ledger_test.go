//go:build peers

package peers_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"replayd/test/outside"
)

// Of 40 rows, 20 a second, two lanes send about 10 at a TTFT of 300 ms; the others are dropped. An independent program
// computes the same ledger and figures from the records, the engine's log and the export, and finds each count of the
// ledger that is off by one.
func TestLedgerRecomputed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var trace bytes.Buffer
	for i := range 40 {
		output := "20"
		if i%5 == 0 {
			output = "1" // no TPOT
		}
		trace.WriteString(`{"timestamp": ` + strconv.Itoa(50*i) + `, "input_length": ` + strconv.Itoa(100+i) + `, "output_length": ` + output + `, "hash_ids": [` + strconv.Itoa(i) + "]}\n")
	}
	outside.Write(t, dir, "t.jsonl", trace.String())
	e := start(t, dir, "--model", "m", "--ttft", "300ms", "--itl", "5ms")
	s := shell(t, dir, e.address, "replayd run t.jsonl --url $ENDPOINT_URL --lanes 2 --overload drop --goodput ttft:2s,tpot:50ms --artifact-dir a --records records.jsonl")
	well(t, s)
	s.all = e.received(t)
	s.agrees(t, filepath.Join(dir, "a"))
	if len(s.all) == 0 || len(s.all) >= 40 {
		t.Fatalf("want some of 40 requests sent and some dropped, the engine saw %d", len(s.all))
	}
	recompute := func() (string, error) {
		said, err := exec.CommandContext(t.Context(), "python3", "../report/recompute.py", filepath.Join(dir, "a"),
			"--records", filepath.Join(dir, "records.jsonl"), "--engine", e.log).CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			outside.Missing(t, err, "")
		}
		return string(said), err
	}
	if said, err := recompute(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, file := range []string{"records.jsonl", "a/profile_export_aiperf.json"} {
		path := filepath.Join(dir, file)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, count := range []string{"expected", "ok", "overload", "good", "eligible", "filtered"} {
			digits := regexp.MustCompile(`"`+count+`": ?\d*(\d)`).FindAllSubmatchIndex(whole, -1)
			if digits == nil {
				t.Fatalf("%s: no %s in it", file, count)
			}
			at := digits[len(digits)-1][2]
			changed := bytes.Clone(whole)
			changed[at] = '0' + (changed[at]-'0'+1)%10
			outside.Write(t, dir, file, string(changed))
			if said, err := recompute(); err == nil || !strings.Contains(said, " differ") {
				t.Errorf("%s: %s is off by one: not found\n%s", file, count, said)
			}
		}
		outside.Write(t, dir, file, string(whole))
	}
}
