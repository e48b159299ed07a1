//go:build canary

package canary_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/test/machine"
	"replayd/test/outside"
)

// A comparison is a process of replayd compare.
type comparison struct {
	*outside.Process
	name    string
	longest time.Duration
}

// compare starts a comparison of at most so long.
func (p *pair) compare(t *testing.T, name string, longest time.Duration, flags ...string) *comparison {
	t.Helper()
	out := filepath.Join(p.dir, strings.ReplaceAll(name, " ", "-")+".out")
	return &comparison{name: name, longest: longest, Process: outside.Start(t, out, binary, append([]string{
		"compare", p.trace, "--baseline", p.baseline.url(), "--candidate", p.candidate.url(),
		"--for", longest.String(), "--min-time", block.String(),
	}, flags...)...)}
}

// A said is the end of a comparison as its table shows it.
type said struct {
	code       int
	verdict    string // fail, pass or undecided
	metric     string // of a fail
	pairs      int
	void       int
	took       time.Duration
	blocks     map[string]int
	ratio      map[string]float64 // of latencies
	excess     map[string]float64 // of shares of requests
	began, end time.Time
}

// grace is the time that a comparison has beyond --for: its start, the requests in flight, a loaded machine.
const grace = 50 * time.Second

// wait waits for the end and reads the table.
func (c *comparison) wait(t *testing.T) *said {
	t.Helper()
	c.WaitIn(t, c.longest+grace)
	text := c.Said(t)
	s := &said{
		took: c.Ended.Sub(c.Began), began: c.Began, end: c.Ended,
		blocks: map[string]int{}, ratio: map[string]float64{}, excess: map[string]float64{},
	}
	if exit := (*exec.ExitError)(nil); errors.As(c.Err, &exit) {
		s.code = exit.ExitCode()
	} else if c.Err != nil {
		t.Fatal(c.Err)
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 4 {
			continue
		}
		value, fault := strconv.ParseFloat(words[3], 64)
		if fault != nil {
			continue
		}
		switch words[0] {
		case "ttft", "tpot", "e2e":
			s.ratio[words[0]] = value
		case "tail", "queued", "bad":
			s.excess[words[0]] = value / 100
		default:
			continue
		}
		s.blocks[words[0]], _ = strconv.Atoi(words[1])
	}
	counts := regexp.MustCompile(`(?m)^pairs: (\d+), void: (\d+)$`).FindStringSubmatch(text)
	verdict := regexp.MustCompile(`(?m)^verdict: (fail|pass|undecided)(: .*)$`).FindStringSubmatch(text)
	if counts == nil || verdict == nil {
		t.Fatalf("%s: want a table with pairs and verdict, got\n%s", c.name, text)
	}
	s.pairs, _ = strconv.Atoi(counts[1])
	s.void, _ = strconv.Atoi(counts[2])
	if s.verdict = verdict[1]; s.verdict == "fail" {
		s.metric = failed(verdict[2])
	}
	t.Logf("%s: exit code %d after %v\n%s", c.name, s.code, s.took.Round(time.Second), table(text))
	return s
}

// failed returns the metric that a fail names.
func failed(sentence string) string {
	for words, metric := range map[string]string{
		", ttft ": "ttft", ", tpot ": "tpot", ", e2e ": "e2e", "are much slower than most": "tail", "are queued": "queued", "are bad": "bad",
	} {
		if strings.Contains(sentence, words) {
			return metric
		}
	}
	return "?"
}

// table returns the end of the output, from the table on.
func table(text string) string {
	if at := strings.Index(text, "metric "); at >= 0 {
		return text[at:]
	}
	return text
}

// want checks verdict and exit code. A busy machine may make so many pairs void that there is no verdict in time.
func (s *said) want(t *testing.T, verdict, metric string) {
	t.Helper()
	codes := map[string]int{"pass": 0, "fail": 3, "undecided": 4}
	if s.verdict == "undecided" && s.code == codes["undecided"] && !machine.Measures(t, "the verdict, for which there were too few pairs") {
		return
	}
	if s.verdict != verdict || s.metric != metric || s.code != codes[verdict] {
		t.Errorf("want %s %s and exit code %d, got %s %s and %d", verdict, metric, codes[verdict], s.verdict, s.metric, s.code)
	}
}
