package scrape

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"replayd/test/outside"
)

// A line of a recorded page is dropped, repeated, cut or garbled. Figures that are not computed from the family of that line stay as they were; none of
// the family is lower than it was where the damage can be seen. A line that is gone, or that has another number, cannot be seen.
func TestMutatedPages(t *testing.T) {
	mutations := outside.Knob(t, "SCRAPE_MUTATIONS", 4000, strconv.Atoi)
	pages, err := filepath.Glob("testdata/pages/*.txt")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages", err)
	}
	var v *Vocabulary
	read := func(body []byte) (*Page, *Reading) {
		wanted, told := v.Recognizer()
		p, err := Parse(body, text004, wanted)
		if p == nil || err != nil {
			return p, nil
		}
		return p, v.Read(p, told())
	}
	rng := rand.New(rand.NewPCG(1, 44))
	seen := map[string]int{}
	for _, path := range pages {
		roles := rolesOf(filepath.Base(path))
		v = vocabularyOf(t, roles[len(roles)-1])
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		body = append(bytes.TrimRight(body, "\n"), '\n')
		whole, before := read(body)
		if before == nil || len(before.Figures) == 0 {
			continue // a page of another format, or without figures
		}
		lines := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
		for range max(1, mutations/len(pages)) {
			at := rng.IntN(len(lines))
			name, mutated := outside.Mutate(lines[at], rng)
			changed := slices.Clone(lines)
			changed = slices.Replace(changed, at, at+1, mutated...)
			now, after := read([]byte(strings.Join(changed, "\n") + "\n"))
			what := fmt.Sprintf("%s:%d, %s: %q", filepath.Base(path), at+1, name, mutated)
			if after == nil {
				t.Fatalf("%s: no page", what)
			}
			touched := map[string]bool{}
			for _, line := range append(mutated, lines[at]) {
				touched[familyOf(nameOn([]byte(line)))] = true
			}
			for _, near := range []int{at - 1, at + 1} { // without a comment between two families the line may be of either
				if near >= 0 && near < len(lines) && !strings.HasPrefix(lines[near], "#") {
					touched[familyOf(nameOn([]byte(lines[near])))] = true
				}
			}
			if strings.HasPrefix(lines[at], "#") { // cut, the comment of a family without samples may be of the next family
				for _, next := range lines[at+1:] {
					if family := familyOf(nameOn([]byte(next))); family != "" && family != familyOf(nameOn([]byte(lines[at]))) {
						touched[family] = true
						break
					}
				}
			}
			if after.Engine != before.Engine {
				t.Fatalf("%s: the engine is %q, want %q", what, after.Engine, before.Engine)
			}
			seen["guard: "+guarding(t, what, v, before, after, touched)]++
			for _, q := range allQuantities() {
				was, is := figuresOf(before, q), figuresOf(after, q)
				switch {
				case reflect.DeepEqual(was, is):
					seen["the same"]++
				case !v.uses(before.Engine, q, touched):
					t.Fatalf("%s: %s is %v, want %v", what, q.Name, is, was)
				case len(is) == 0:
					seen["left out"]++
				case now.Bad > whole.Bad && isPart(is, was): // a value that cannot be costs its rank
					seen["rank left out"]++
				case now.Bad > whole.Bad:
					t.Fatalf("%s: %s is %v and a line was left out, want none or %v", what, q.Name, is, was)
				default:
					seen["not seen: "+name]++
				}
			}
		}
	}
	t.Log(seen)
}

// guarding compares what a guard gets from a page and from the mutated one after it. A figure of another family stays. One
// of the mutated family is unknown, or no lower; else the damage cannot be seen.
func guarding(t *testing.T, what string, v *Vocabulary, before, after *Reading, touched map[string]bool) string {
	t.Helper()
	seen := before.ranks(nil)
	was := before.load()
	after.ranks(seen)
	is := after.load()
	for _, f := range []struct {
		q       *Quantity
		was, is float64
	}{{waiting, was.Waiting, is.Waiting}, {kvCacheUsage, was.KVCacheUsage, is.KVCacheUsage}} {
		switch {
		case f.was == f.is, math.IsNaN(f.was) && math.IsNaN(f.is):
			continue
		case !v.uses(before.Engine, f.q, touched):
			t.Fatalf("%s: the guard's %s is %v, want %v", what, f.q.Name, f.is, f.was)
		case math.IsNaN(f.is):
			return "unknown"
		case f.is < f.was:
			return "lower and not seen"
		}
		return "higher"
	}
	return "the same"
}

// isPart reports whether all figures are among others.
func isPart(some, of []Figure) bool {
	return !slices.ContainsFunc(some, func(f Figure) bool {
		return !slices.ContainsFunc(of, func(o Figure) bool { return reflect.DeepEqual(f, o) })
	})
}

// figuresOf returns the figures of a quantity.
func figuresOf(r *Reading, q *Quantity) (all []Figure) {
	for _, f := range r.Figures {
		if f.Quantity == q {
			all = append(all, f)
		}
	}
	return all
}

// uses reports whether a row of an engine computes a quantity from one of some families.
func (v *Vocabulary) uses(engine string, q *Quantity, families map[string]bool) bool {
	for _, row := range v.rows[engine] {
		if row.Quantity != q.Name {
			continue
		}
		names := append(row.names(), row.Less)
		for _, other := range row.added() {
			names = append(names, other.names()...)
		}
		if slices.ContainsFunc(names, func(name string) bool { return families[familyOf(name)] }) {
			return true
		}
	}
	return false
}
