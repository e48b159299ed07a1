package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// events writes a file as `go test -json` does. A line is an action, a package and a test ("-": none), and for output its text.
func events(t *testing.T, lines ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "events.json")
	var text strings.Builder
	for _, line := range lines {
		f := strings.SplitN(line, " ", 4)
		e := event{Action: f[0], Package: f[1]}
		if len(f) > 2 && f[2] != "-" {
			e.Test = f[2]
		}
		if len(f) > 3 {
			e.Output = f[3] + "\n"
		}
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(b, '\n'))
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	passes   = []string{"pass p A", "skip p B", "pass p -"}
	failsA   = []string{"output p A a.go:1: no", "fail p A", "pass p B", "fail p -"}
	againOK  = []string{"pass p A", "pass p -"}
	againBad = []string{"fail p A", "fail p -"}
	noTest   = []string{"output p - testing: warning: no tests to run", "pass p -"}
	tears    = []string{"pass p A", "pass p B", "output p - no socket", "fail p -"}
	times    = []string{"pass p A", "output p B panic: test timed out after 20m0s", "output p B goroutine 1 [running]:", "fail p -"}
	panics   = []string{"output p A panic: nil map [recovered]", "fail p A", "fail p -"}
	unbuilts = []string{"output p - FAIL\tp [build failed]", "fail p -"}
	cut      = []string{"pass p A"}
)

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		tests, whole [][]string
		is           kind
		why          string
	}{
		"passes":                               {[][]string{passes}, nil, green, ""},
		"fails, not looked at again":           {[][]string{failsA}, nil, unclear, "it needs a second look"},
		"fails once":                           {[][]string{failsA, againOK}, nil, flaky, ""},
		"fails twice, then not":                {[][]string{failsA, againBad, againOK}, nil, flaky, ""},
		"fails always":                         {[][]string{failsA, againBad, againBad}, nil, red, "failed at each look: A"},
		"passes again in a package that fails": {[][]string{failsA, tears}, nil, red, "failed at each look: A"},
		"fails without a failed test":          {[][]string{tears}, nil, unclear, "it needs a look as a whole"},
		"a second look without a test":         {[][]string{tears, noTest}, nil, unclear, "it needs a look as a whole"},
		"fails without a test, once":           {[][]string{tears, noTest}, [][]string{passes}, flaky, ""},
		"fails without a test, twice":          {[][]string{tears, noTest}, [][]string{tears}, red, "it failed at both looks"},
		"a whole look without a test":          {[][]string{tears}, [][]string{noTest}, red, "it failed at both looks"},
		"times out":                            {[][]string{times}, nil, unclear, "it needs a look as a whole"},
		"times out once":                       {[][]string{times}, [][]string{passes}, flaky, ""},
		"times out twice":                      {[][]string{times}, [][]string{times}, red, "it failed at both looks"},
		"panics":                               {[][]string{panics}, nil, red, "it panicked"},
		"panics at the second look":            {[][]string{tears}, [][]string{panics}, red, "it panicked"},
		"does not build":                       {[][]string{unbuilts}, nil, red, "it does not build"},
		"is cut off":                           {[][]string{cut}, nil, red, "it has no end"},
	} {
		t.Run(name, func(t *testing.T) {
			paths := []string{events(t, flat(c.tests)...)}
			if c.whole != nil {
				paths = append(paths, events(t, flat(c.whole)...))
			}
			l, err := read(paths...)
			if err != nil {
				t.Fatal(err)
			}
			if v := l["p"].judge(); v.is != c.is || v.why != c.why {
				t.Errorf("want %v %q, got %v %q", c.is, c.why, v.is, v.why)
			}
		})
	}
}

func flat(looks [][]string) (all []string) {
	for _, l := range looks {
		all = append(all, l...)
	}
	return all
}

// A package is looked at again as a whole only if nothing else is proven.
func TestAgain(t *testing.T) {
	six := []string{"fail q A", "fail q B", "fail q C", "fail q D", "fail q E", "fail q E/sub", "fail q F", "fail q -"}
	for _, c := range []struct {
		lines []string
		out   string
		err   string
	}{
		{passes, "", ""},
		{append(tears, "fail q A", "fail q -"), "p\nq\n", ""}, // gotestsum looked at neither, because one timed out
		{six, "q\n", "proven faults:\n  6 tests failed: more than 5 are no chance"},
		{append(tears, "output q - FAIL\tq [setup failed]", "fail q -"), "p\n", "proven faults:\n  q: it does not build"},
	} {
		var out strings.Builder
		err := run([]string{"again", events(t, c.lines...)}, &out)
		if said := message(err); out.String() != c.out || said != c.err {
			t.Errorf("%q: want %q, %q, got %q, %q", c.lines, c.out, c.err, out.String(), said)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The report counts each test once, names those that failed by chance with their first output, and wants each skip listed.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	skips, chance := filepath.Join(dir, "skips.txt"), filepath.Join(dir, "flaky.txt")
	t.Setenv("HAS_TRACES", "yes")
	for _, c := range []struct{ listed, out, err string }{
		{"p.B by hand", "skipped p.B: by hand\nFLAKY q.A\n    a.go:1: no\nFLAKY r\n    no socket\n5 passed, 0 failed, 1 skipped\n", ""},
		{
			"p.B unless HAS_TRACES traces", "FLAKY q.A\n    a.go:1: no\nFLAKY r\n    no socket\n5 passed, 0 failed, 1 skipped\n",
			"proven faults:\n  p.B was skipped, and " + skips + " does not list it",
		},
		{"p.B unless HAS_NONE traces", "skipped p.B: unless HAS_NONE traces\nFLAKY q.A\n    a.go:1: no\nFLAKY r\n    no socket\n5 passed, 0 failed, 1 skipped\n", ""},
	} {
		if err := os.WriteFile(skips, []byte("# tests that may skip\n\n"+c.listed+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		of := func(p string, lines []string) string {
			return strings.ReplaceAll(strings.Join(lines, "\n"), " p ", " "+p+" ")
		}
		tests := strings.Split(strings.Join([]string{of("p", passes), of("q", failsA), of("q", againOK), of("r", tears)}, "\n"), "\n")
		whole := strings.Split(of("r", []string{"pass p A", "pass p B", "pass p -"}), "\n")
		var out strings.Builder
		err := run([]string{"report", "-skips", skips, "-flaky", chance, events(t, tests...), events(t, whole...)}, &out)
		if said := message(err); out.String() != c.out || said != c.err {
			t.Errorf("%s: want %q, %q, got %q, %q", c.listed, c.out, c.err, out.String(), said)
		}
		kept, err := os.ReadFile(chance)
		if err != nil || !strings.Contains(c.out, string(kept)) || !strings.HasPrefix(string(kept), "FLAKY q.A\n") {
			t.Errorf("want the lines FLAKY in a file, got %q, %v", kept, err)
		}
	}
}

// Input that is not as it should be is a fault, never a pass.
func TestBadInput(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte("{\"Action\":\"pass\",\"Package\":\"p\"}\n{\"Action\":\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "usage: gate again | report"},
		{[]string{"again"}, "usage: gate again TESTS"},
		{[]string{"again", broken}, "broken.json:2: want an event"},
		{[]string{"again", events(t)}, "want the events of `go test -json`, got none"},
		{[]string{"report", "-skips", broken + ".none", events(t, passes...)}, "no such file"},
		{[]string{"report", "a", "b", "c"}, "usage: gate report"},
	} {
		if err := run(c.args, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: want %q, got %v", c.args, c.want, err)
		}
	}
}
