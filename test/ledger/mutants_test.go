//go:build real

package ledger_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"replayd/test/outside"
)

// binaryEnv names a binary to judge instead of the one that is built.
const binaryEnv = "LEDGER_BINARY"

// Each mutant is off by one in one count. The run that judges it has all of these counts.
var mutants = map[string][2]string{
	"expected": {"Expected: c.expected,", "Expected: c.expected + 1,"},
	"outcomes": {"Outcomes: byName(allOutcomes, c.finished[:]),", "Outcomes: measure.Ledger{Outcomes: byName(allOutcomes, c.finished[:])}.Add(measure.Ledger{Outcomes: map[measure.Outcome]int64{measure.OK: 1}}).Outcomes,"},
	"drops":    {"Dropped: byName(allDropReasons, c.dropped[:]),", "Dropped: measure.Ledger{Dropped: byName(allDropReasons, c.dropped[:])}.Add(measure.Ledger{Dropped: map[measure.DropReason]int64{measure.Overload: 1}}).Dropped,"},
	"good":     {"Good: c.good,", "Good: c.good - 1,"},
	"eligible": {"Eligible: c.eligible,", "Eligible: c.eligible + 1,"},
	"unjudged": {"Unjudged: c.unjudged,", "Unjudged: c.unjudged + 1,"},
}

// TestMutants builds replayd with a ledger that is off by one
// in one place. The judgment of a run must find each mutant.
func TestMutants(t *testing.T) {
	if os.Getenv(binaryEnv) != "" {
		t.Skip("this is a mutant's judgment")
	}
	source, err := filepath.Abs("../../internal/metrics/ledgers.go")
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, source)
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Count(text, m[0]) != 1 {
				t.Fatalf("want %q in %s once", m[0], source)
			}
			dir := t.TempDir()
			changed := outside.Write(t, dir, "ledgers.go", strings.Replace(text, m[0], m[1], 1))
			overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
			if err != nil {
				t.Fatal(err)
			}
			mutant := filepath.Join(dir, "replayd")
			build := exec.CommandContext(t.Context(), "go", "build", "-overlay", outside.Write(t, dir, "overlay.json", string(overlay)), "-o", mutant, "replayd/cmd/replayd")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			judge := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOneLedger$/^runs$/^"+judgedBy+"$", "-test.count=1")
			judge.Env = append(os.Environ(), binaryEnv+"="+mutant)
			out, err := judge.CombinedOutput()
			if err == nil {
				t.Errorf("want a fault found, got none:\n%s", out)
			}
			if !strings.Contains(string(out), "--- FAIL: TestOneLedger/runs/"+judgedBy) {
				t.Errorf("want %s to fail, got:\n%s", judgedBy, out)
			}
		})
	}
}

// judgedBy is the name of a run with drops that count against the service.
const judgedBy = "overload"
