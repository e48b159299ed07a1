//go:build real

package ledger_test

import (
	"encoding/csv"
	"fmt"
	"html"
	"maps"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// texts checks the outputs for people.
func (c *run) texts(t *testing.T, dir string, m made, want account) {
	t.Helper()
	if !c.aiperf {
		for _, name := range differs(want, onStdout(t, m.out), 1e-4) {
			t.Errorf("stdout: %s: want %v, got\n%s", name, want[name], m.out)
		}
	}
	if c.aiperf {
		agreesOnGood(t, "stdout", m.out, want, eligible)
	}
	csv := inCSV(t, read(t, dir, artifacts, "profile_export_aiperf.csv"))
	dropped := 0.0
	for name, n := range want {
		if strings.HasPrefix(name, "dropped ") {
			dropped += n
		}
	}
	for name, number := range map[string]float64{
		"Request Count": want["ok"], "Cancelled Request Count": want["cancelled"], "Expected Request Count": want[expected],
		"Dropped Request Count": dropped, "Attainment (ratio)": want[overall], "Service Attainment (ratio)": want[service],
	} {
		if v, said := csv[name]; !said || math.Abs(v-number) > 1e-12 {
			t.Errorf("CSV: %s: want %v, got %v", name, number, v)
		}
	}
	for name, number := range map[string]float64{
		"Session Count (sessions)": want[begun], "Ok Session Count (sessions)": want["sessions ok"], "Failed Session Count (sessions)": want["sessions failed"],
		"Good Session Count (sessions)": want[goods],
	} {
		if v, said := csv[name]; said != (c.sessions > 0) || v != number {
			t.Errorf("CSV: %s: want %v, got %v", name, number, v)
		}
	}
	if v, said := csv["Good Request Count"]; said && v != want[good] {
		t.Errorf("CSV: Good Request Count: want %v, got %v", want[good], v)
	}
	c.page(t, dir, want)
}

// page checks the page that `report` makes of the folder.
func (c *run) page(t *testing.T, dir string, want account) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), binary, "report", filepath.Join(dir, artifacts)).CombinedOutput(); err != nil {
		t.Fatalf("report: %v\n%s", err, out)
	}
	text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(read(t, dir, artifacts, "report.html"), " "))
	if c.flag("--slo")+c.flag("--goodput") != "" {
		agreesOnGood(t, "page", text, want, eligible)
	} else { // every ok request is good, and the page says it once
		agreesOnGood(t, "page", text, want)
	}
	for name, n := range ofSessions(text) {
		if n != want[name] || c.sessions == 0 {
			t.Errorf("page: %s: want %v, got %v", name, want[name], n)
		}
	}
	if c.sessions > 0 && ofSessions(text)[begun] == 0 {
		t.Error("page: want the sessions counted, it does not say")
	}
	for name, n := range want {
		if reason, drop := strings.CutPrefix(name, "dropped "); drop && !regexp.MustCompile(`Never sent: `+reason+`\s+`+strconv.Itoa(int(n))+`\b`).MatchString(text) {
			t.Errorf("page: want %v never sent (%s), it does not say so", n, reason)
		}
	}
	if told := strings.Contains(text, "never sent"); told && want[expected] == float64(c.expected) && c.drops == "" && want["dropped missed"] == 0 {
		t.Error("page: want all sent, it says that some were never sent")
	}
}

// agreesOnGood checks both shares in a text: "12 good of 40 expected" and "12 good of 12 eligible". Where requests are
// not judged, it says "12 good of 30 expected and judged, 10 not judged". The text has those of more, besides the
// expected.
func agreesOnGood(t *testing.T, output, text string, want account, more ...string) {
	t.Helper()
	total := expected
	if want[unjudged] > 0 {
		total = judged
		if !strings.Contains(text, fmt.Sprintf("%s, %v not judged", judged, want[unjudged])) {
			t.Errorf("%s: want %v not judged, it does not say so", output, want[unjudged])
		}
	}
	for _, of := range append(more, total) {
		m := regexp.MustCompile(`(\d+) good of (\d+) ` + of).FindStringSubmatch(text)
		if len(m) != 3 || m[1] != strconv.Itoa(int(want[good])) || m[2] != strconv.Itoa(int(want[of])) {
			t.Errorf("%s: want %v good of %v %s, got %v", output, want[good], want[of], of, m)
		}
	}
}

// onStdout parses the native table. Its shares have four decimals.
func onStdout(t *testing.T, out string) account {
	t.Helper()
	a := account{}
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, m := range regexp.MustCompile(`(?m)^(expected|filtered|dropped \w+|[a-z_0-9]+) +(\d+)(?:, .*)?$`).FindAllStringSubmatch(out, -1) {
		a[m[1]] = number(m[2])
	}
	delete(a, "sent")
	for _, m := range regexp.MustCompile(`(?m)^not judged +(\d+) of \d+ ok`).FindAllStringSubmatch(out, -1) {
		a[unjudged] = number(m[1])
	}
	shares := regexp.MustCompile(`(?m)^(attainment|service attainment) +([\d.]+): (\d+) of (\d+) (expected and judged|expected|eligible)$`)
	for _, m := range shares.FindAllStringSubmatch(out, -1) {
		a[m[1]], a[good], a[m[5]] = number(m[2]), number(m[3]), number(m[4])
	}
	if a[unjudged] == 0 {
		a[unjudged], a[judged] = 0, a[expected] // it says neither
	}
	maps.Copy(a, ofSessions(out))
	for _, m := range regexp.MustCompile(`(?m)^session attainment +[\d.]+: (\d+) of `).FindAllStringSubmatch(out, -1) {
		a[goods] = number(m[1])
	}
	return a
}

// ofSessions returns what a text says of sessions: "8: 3 ok, 5 failed".
func ofSessions(text string) account {
	a := account{}
	m := regexp.MustCompile(`[Ss]essions(?: that have begun:)? +(\d+): (\d+ [a-z]+(?:, \d+ [a-z]+)*)`).FindStringSubmatch(text)
	if m == nil {
		return a
	}
	a[begun], _ = strconv.ParseFloat(m[1], 64)
	for part := range strings.SplitSeq(m[2], ", ") {
		n, outcome, _ := strings.Cut(part, " ")
		a["sessions "+outcome], _ = strconv.ParseFloat(n, 64)
	}
	return a
}

// inCSV returns the numbers of a profile_export_aiperf.csv that cover all requests, by their names there.
func inCSV(t *testing.T, text string) map[string]float64 {
	t.Helper()
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, cells := range lines {
		if len(cells) == 2 && cells[0] != "Metric" {
			if all[cells[0]], err = strconv.ParseFloat(cells[1], 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}
