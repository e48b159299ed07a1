//go:build bench && linux

package truth_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// saysSo checks that replayd reports a load that the machine does not carry: on /metrics, in the table at the end of
// the run and in the report. There is nothing to report on a machine that carries the load.
func saysSo(t *testing.T, p page) {
	t.Helper()
	merged := p.Sum("replayd_coalesced_reads_total")
	delay := p.Page["replayd_read_delay_seconds"].GetMetric()[0].GetHistogram()
	late := p.Page["replayd_lateness_seconds"].GetMetric()[0].GetHistogram()
	reads, requests := float64(delay.GetSampleCount()), float64(late.GetSampleCount())
	if reads == 0 || requests == 0 {
		t.Fatalf("want read delays and lateness on the page, got %v and %v", reads, requests)
	}
	t.Logf("past the machine: %.1f %% of reads held several chunks; mean read delay %.2f ms, mean lateness %.2f ms",
		100*merged/reads, 1e3*delay.GetSampleSum()/reads, 1e3*late.GetSampleSum()/requests)
	if merged*100 < reads {
		t.Log("so this machine carries it")
		return
	}
	for _, want := range []string{"\ncoalesced reads ", "\nread delay ", "\nlateness "} {
		at := strings.Index(p.said, want)
		if at < 0 {
			t.Errorf("want %q in the table of the run, got\n%s", want, p.said)
			continue
		}
		line, _, _ := strings.Cut(p.said[at+1:], "\n")
		t.Log(line)
	}
	html := filepath.Join(t.TempDir(), "report.html")
	if out, err := exec.CommandContext(t.Context(), binary, "report", p.artifacts, "--output", html).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(html)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"; some reads held several chunks", "All but the last chunk of such a read", "The mean delay between", "Lateness p99"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("want %q in the report, got none", want)
		}
	}
}
