package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

const mostShown = 20 // lines of a test that failed by chance

// report prints what failed by chance, which tests were skipped and how many ran. An error says what is proven, and which
// tests skip that may not.
func (l looks) report(out io.Writer, skipsFile, flakyFile string) error {
	may, err := readSkips(skipsFile)
	if err != nil {
		return err
	}
	var faults []string
	var chance strings.Builder
	passed, failed, skipped := 0, 0, 0
	for _, p := range l.packages() {
		h := l[p]
		switch v := h.judge(); v.is {
		case red, unclear:
			faults = append(faults, p+": "+v.why)
		case flaky:
			h[0].show(&chance, p, v.tests)
		}
		for test, ended := range h.ended() {
			switch name := p + "." + test; ended {
			case "pass":
				passed++
			case "fail":
				failed++
			case "skip":
				skipped++
				if why, listed := may[name]; listed {
					fmt.Fprintf(out, "skipped %s: %s\n", name, why)
				} else {
					faults = append(faults, fmt.Sprintf("%s was skipped, and %s does not list it", name, skipsFile))
				}
			}
		}
	}
	if err := os.WriteFile(flakyFile, []byte(chance.String()), 0o644); err != nil {
		return err
	}
	fmt.Fprint(out, chance.String())
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return proven(faults)
}

// ended returns how each test ended, at the last look at it.
func (h history) ended() map[string]string {
	all := map[string]string{}
	for _, k := range h {
		maps.Copy(all, k.ended)
	}
	return all
}

// show writes a line FLAKY for each test, with the first lines of its output.
func (k *look) show(out io.Writer, p string, tests []string) {
	if len(tests) == 0 {
		tests = []string{""}
	}
	for _, test := range tests {
		fmt.Fprintln(out, strings.TrimSuffix("FLAKY "+p+"."+test, "."))
		var said []string
		for _, name := range slices.Sorted(maps.Keys(k.said)) {
			if name == test || strings.HasPrefix(name, test+"/") && k.ended[name] == "fail" {
				said = append(said, k.said[name]...)
			}
		}
		lines := strings.Split(strings.TrimRight(strings.Join(said, ""), "\n"), "\n")
		for _, line := range lines[:min(len(lines), mostShown)] {
			fmt.Fprintln(out, "    "+line)
		}
	}
}

// readSkips reads the tests that may skip, each with its reason: a line has package.Test and the reason. A reason that begins
// with "unless VARIABLE" holds where the environment has no such variable.
func readSkips(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	may := map[string]string{}
	in := bufio.NewScanner(file)
	for number := 1; in.Scan(); number++ {
		line := strings.TrimSpace(in.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, why, found := strings.Cut(line, " ")
		if !found {
			return nil, fmt.Errorf("%s:%d: want package.Test and a reason, got %q", path, number, line)
		}
		if words := strings.Fields(why); words[0] == "unless" && len(words) > 1 && os.Getenv(words[1]) != "" {
			continue
		}
		may[name] = strings.TrimSpace(why)
	}
	return may, in.Err()
}
