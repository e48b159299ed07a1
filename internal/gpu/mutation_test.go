package gpu

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"replayd/internal/scrape"
	"replayd/test/outside"
)

// A figureKey names a figure of a device by what no other row of the device tells.
type figureKey struct {
	device string
	field  *Field
}

// figuresOf returns the figures of a reading, each of which has to be in its range.
func figuresOf(t *testing.T, r Reading, what string) map[figureKey]float64 {
	t.Helper()
	figures := map[figureKey]float64{}
	for _, d := range r.Devices {
		for f, v := range d.Values {
			if !(v >= f.least && v <= f.most) {
				t.Fatalf("%s: %s is %v, want %v to %v", what, f.Name, v, f.least, f.most)
			}
			figures[figureKey{fmt.Sprint(d.identity(), d.Hostname, d.Pod), f}] = v
		}
	}
	return figures
}

// differ fails for figures that are not the same and that a mutated line cannot have touched.
func differ(t *testing.T, what string, before, after map[figureKey]float64, touched func(figureKey) bool) {
	t.Helper()
	for _, figures := range []map[figureKey]float64{before, after} {
		for k := range figures {
			was, had := before[k]
			is, has := after[k]
			if (was != is || had != has) && !touched(k) {
				t.Fatalf("%s: %s of %s is %v, %t, want %v, %t", what, k.field.Name, k.device, is, has, was, had)
			}
		}
	}
}

// A line of a recorded page is dropped, repeated, cut or garbled. The figures of other families stay as they were, and
// none leaves its range. A line whose name cannot be read may be of the family before it or behind it.
func TestMutatedPages(t *testing.T) {
	mutations := outside.Knob(t, "GPU_MUTATIONS", 4000, strconv.Atoi)
	pages, err := filepath.Glob("testdata/pages/*.txt")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages", err)
	}
	rng := rand.New(rand.NewPCG(1, 44))
	for _, path := range pages {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(bytes.TrimRight(body, "\n")), "\n")
		before := figuresOf(t, onGPUs(mustParse(t, string(body))), path)
		for range max(1, mutations/2/len(pages)) {
			at := rng.IntN(len(lines))
			how, mutated := outside.Mutate(lines[at], rng)
			what := fmt.Sprintf("%s:%d, %s: %q", filepath.Base(path), at+1, how, mutated)
			if at == 0 && len(mutated) > 0 && strings.HasPrefix(mutated[0], "{") {
				continue // such a body is taken for JSON
			}
			changed := slices.Replace(slices.Clone(lines), at, at+1, mutated...)
			p, err := scrape.Parse([]byte(strings.Join(changed, "\n")+"\n"), "text/plain", onPage)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			near := slices.Concat(mutated, around(lines, at))
			differ(t, what, before, figuresOf(t, onGPUs(p), what), func(k figureKey) bool {
				return slices.ContainsFunc(near, func(line string) bool {
					return slices.ContainsFunc(pageNames(k.field), func(name string) bool { return strings.Contains(line, name) })
				})
			})
		}
	}
}

// pageNames returns the names of a field on the pages of exporters.
func pageNames(f *Field) []string {
	names := slices.Clone(f.Names)
	for _, o := range f.others {
		names = append(names, o.name)
	}
	return names
}

// around returns a line and those around it up to the next samples.
func around(lines []string, at int) []string {
	sample := func(line string) bool { return line != "" && line[0] != '#' }
	first, last := max(0, at-1), min(len(lines)-1, at+1)
	for first > 0 && !sample(lines[first]) {
		first--
	}
	for last < len(lines)-1 && !sample(lines[last]) {
		last++
	}
	return lines[first : last+1]
}

// The same of what nvidia-smi has written: only the row itself changes. The recordings are of one board; here they stand
// for three of a machine.
func TestMutatedSMI(t *testing.T) {
	mutations := outside.Knob(t, "GPU_MUTATIONS", 4000, strconv.Atoi)
	columns := NewSMI("").columns()
	recorded, err := filepath.Glob("testdata/smi/*.nounits.csv")
	if err != nil || len(recorded) < 3 {
		t.Fatal("want three recordings", recorded, err)
	}
	var lines []string
	for i, path := range recorded {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		row, found := strings.CutPrefix(strings.TrimSpace(string(text)), "0, GPU-00000000")
		if r := parseSMI(text, columns); !found || len(r.Devices) != 1 || r.Bad > 0 || len(r.Devices[0].Values) != len(columns) {
			t.Fatalf("%s: want one board with all figures, got %+v", path, r)
		}
		lines = append(lines, fmt.Sprintf("%d, GPU-%08d%s", i, 111*i, row))
	}
	whole := parseSMI([]byte(strings.Join(lines, "\n")), columns)
	before := figuresOf(t, whole, "whole")
	rng := rand.New(rand.NewPCG(2, 44))
	for range max(1, mutations/2) {
		at := rng.IntN(len(lines))
		how, mutated := outside.Mutate(lines[at], rng)
		what := fmt.Sprintf("row %d, %s: %q", at, how, mutated)
		r := parseSMI([]byte(strings.Join(slices.Replace(slices.Clone(lines), at, at+1, mutated...), "\n")+"\n"), columns)
		others := map[string]bool{}
		for i := range whole.Devices {
			if d := &whole.Devices[i]; i != at {
				others[fmt.Sprint(d.identity(), d.Hostname, d.Pod)] = true
			}
		}
		differ(t, what, before, figuresOf(t, r, what), func(k figureKey) bool { return !others[k.device] })
	}
}
