//go:build bench && linux

package truth_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

// A page is the output of a replayd run.
type page struct {
	outside.Page // scraped as protobuf, which has native histograms
}

// playReplayd plays a load with replayd and reads the output.
func playReplayd(t *testing.T, l load, slice time.Duration, s rig.Server) played {
	t.Helper()
	dir, n := t.TempDir(), l.requests(slice)
	var trace strings.Builder
	for range n {
		fmt.Fprintf(&trace, `{"timestamp":0,"input_length":25,"output_length":%d}`+"\n", tokens)
	}
	listen, artifacts := outside.Address(t), filepath.Join(dir, "artifacts")
	args := []string{
		"run", outside.Write(t, dir, "trace.jsonl", trace.String()), "--url", s.URL, "--name", "truth",
		"--arrival", "constant", "--rate", fmt.Sprint(1 / l.spacing().Seconds()), "--lanes", fmt.Sprint(2 * l.streams), "--max-wait", "0",
		"--artifact-dir", artifacts, "--export-gaps", "--web.listen-address", listen, "--hold", "1m", "--log.level", "info",
	}
	p := outside.Start(t, filepath.Join(dir, "replayd.out"), binary, args...)
	cpu := lab.WatchCPU(p.Cmd.Process.Pid)
	defer cpu.Stop()
	outside.UntilIn(t, time.Minute+slice, func() error {
		select {
		case <-p.Done:
			t.Fatalf("want replayd to hold, it ended: %v", p.Err)
		default:
		}
		if !strings.Contains(p.Said(t), "holding: ") {
			return errors.New("the run has not ended")
		}
		return nil
	})
	families := outside.ScrapeNative(t, "http://"+listen)
	p.Term(t)
	if ok := families.Sum("replayd_requests_total", "ok"); ok != float64(n) {
		t.Errorf("want %d requests ok, got %v", n, ok)
	}
	if families.Sum("replayd_timestamp_source_info", "kernel") != 1 {
		t.Error("want the kernel's times, got those of reads")
	}
	return played{
		seen: readExport(t, filepath.Join(artifacts, "profile_export.jsonl")), cpu: cpu,
		page: page{Page: families},
	}
}

// readExport returns the time of each chunk in replayd's export.
func readExport(t *testing.T, path string) []lab.Seen {
	t.Helper()
	type value struct{ Value float64 }
	lines, err := lab.ReadLines[struct {
		Metadata struct {
			ID    string `json:"x_request_id"`
			Start int64  `json:"request_start_ns"`
		}
		Metrics struct {
			TTFT *value                    `json:"time_to_first_token"` // ms
			Gaps struct{ Value []float64 } `json:"inter_chunk_latency"` // ms
		}
	}](path)
	if err != nil {
		t.Fatal(err)
	}
	seen := make([]lab.Seen, len(lines))
	for i, l := range lines {
		if l.Metrics.TTFT == nil {
			t.Fatalf("%s: want a TTFT of %s, got none", path, l.Metadata.ID)
		}
		at := l.Metadata.Start + int64(math.Round(l.Metrics.TTFT.Value*1e6))
		seen[i] = lab.Seen{ID: l.Metadata.ID, Start: l.Metadata.Start, Chunks: []int64{at}}
		for _, gap := range l.Metrics.Gaps.Value {
			at += int64(math.Round(gap * 1e6))
			seen[i].Chunks = append(seen[i].Chunks, at)
		}
	}
	return seen
}
