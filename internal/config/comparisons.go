package config

import (
	"fmt"
	"strings"
	"time"

	"replayd/internal/canary"
)

// Comparison sends the rows of a workload to a second target as well, at the same instants, and says whether that one is worse.
type Comparison struct {
	Name            string   `koanf:"name"`
	Workload        string   `koanf:"workload"`  // its target is the baseline
	Candidate       string   `koanf:"candidate"` // a target
	Mode            string   `koanf:"mode"`
	Tolerance       float64  `koanf:"tolerance"`
	Alpha           float64  `koanf:"alpha"`
	MinPairs        int      `koanf:"min_pairs"`
	MinTime         Duration `koanf:"min_time"`
	ToleranceTail   float64  `koanf:"tolerance_tail"`
	ToleranceQueued float64  `koanf:"tolerance_queued"`
	ToleranceBad    float64  `koanf:"tolerance_bad"`
}

// State configures the file that keeps the evidence of comparisons over a restart of replayd.
type State struct {
	Path     string `koanf:"path"`      // empty: nothing is kept
	MaxBytes Bytes  `koanf:"max_bytes"` // a larger file is not read
}

// DefaultComparison returns the defaults of a comparison.
func DefaultComparison() Comparison { return ComparisonOf(canary.Defaults()) }

// ComparisonOf returns a comparison with the given options and without names.
func ComparisonOf(o canary.Options) Comparison {
	return Comparison{
		Mode: string(o.Mode), Tolerance: o.Tolerance, Alpha: o.Alpha, MinPairs: o.MinPairs, MinTime: Duration(o.MinTime),
		ToleranceTail: o.ToleranceTail, ToleranceQueued: o.ToleranceQueued, ToleranceBad: o.ToleranceBad,
	}
}

// Options returns the options for package canary.
func (c *Comparison) Options() canary.Options {
	return canary.Options{
		Mode: canary.Mode(c.Mode), Tolerance: c.Tolerance, Alpha: c.Alpha, MinPairs: c.MinPairs, MinTime: time.Duration(c.MinTime),
		ToleranceTail: c.ToleranceTail, ToleranceQueued: c.ToleranceQueued, ToleranceBad: c.ToleranceBad,
	}
}

// checkComparisons checks the comparisons and their references.
func (c *Config) checkComparisons(targets map[string]*Target, f *Faults) {
	workloads := map[string]*Workload{}
	for i := range c.Workloads {
		workloads[c.Workloads[i].Name] = &c.Workloads[i]
	}
	seen, compared := map[string]bool{}, map[string]string{}
	for i := range c.Comparisons {
		one := &c.Comparisons[i]
		at := fmt.Sprintf("comparisons[%d]", i)
		f.name(at, one.Name, seen)
		w := workloads[one.Workload]
		switch other, twice := compared[one.Workload]; {
		case w == nil:
			f.add(at+".workload", "want the name of a workload, got %q", one.Workload)
		case twice:
			f.add(at+".workload", "want a workload of its own, got %q, which comparison %q has", one.Workload, other)
		case !Timed(w.Arrival) && (!ByRate(w.Arrival) || w.Arrival == "users"):
			f.add(at+".workload", "want a workload with planned instants (arrival exact, spread, constant, poisson or gamma), got arrival %s", w.Arrival)
		default:
			compared[one.Workload] = one.Name
		}
		candidate := targets[one.Candidate]
		if candidate == nil {
			f.add(at+".candidate", "want the name of a target, got %q", one.Candidate)
		} else if w != nil {
			w.checkSides(at, targets[w.Target], candidate, f)
		}
		o := one.Options()
		if err := o.Check(); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				key, want, _ := strings.Cut(line, ": ")
				f.add(at+"."+key, "%s", want)
			}
		}
	}
}

// checkSides checks that both targets of a comparison are asked in the same way, so that their answers can be compared.
func (w *Workload) checkSides(at string, baseline, candidate *Target, f *Faults) {
	if baseline == nil {
		return // the workload has the fault
	}
	if baseline.Stream != candidate.Stream || baseline.API != candidate.API || baseline.Output != candidate.Output {
		f.add(at+".candidate", "want a target with the api, stream and output of %q (%s, %v, %s), got %s, %v, %s",
			baseline.Name, baseline.API, baseline.Stream, baseline.Output, candidate.API, candidate.Stream, candidate.Output)
	}
	w.Request.checkAgainst(at+".candidate", candidate, f)
}
