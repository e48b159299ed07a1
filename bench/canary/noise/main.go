// Noise plays rollouts of two servers, with the noise that real ones have, straight into the product's comparison, in
// virtual time: how often are equal servers convicted, and how soon are slower ones? Its engine is its own, and has no
// code of internal/sim.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"replayd/internal/canary"
)

func main() {
	var t table
	kind := flag.String("table", "loads", "loads, calibration, promise, effects, month or students")
	flag.IntVar(&t.rollouts, "rollouts", 20, "of each line")
	flag.Float64Var(&t.hours, "hours", 2, "of a rollout")
	loadNames := flag.String("loads", "L1,L5", "of the tables loads, promise and effects: "+names(loads))
	wanders := flag.String("wander", "0", "w, as shares: 0,0.05")
	pods := flag.String("pods", "", "on each side, in place of the load's own: 1,4")
	require := flag.String("require", string(canary.ScopePair), "what a verdict is about: pair, or pods")
	path := flag.String("trace", "", "the Azure trace azure_2023_conv.csv; without it, lengths and arrivals like its")
	flag.StringVar(&t.only, "only", "", "the lines whose name has this")
	flag.Parse()
	t.require = canary.Scope(*require)
	err := t.set(*loadNames, *wanders, *pods, *path)
	if err == nil {
		err = t.print(*kind)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options are those of the product's comparison, with a wander of w.
func (t *table) options(w float64) canary.Options {
	o := canary.Defaults()
	o.Wander, o.Require = w, t.require
	return o
}

func names(all []load) string {
	var text []string
	for _, l := range all {
		text = append(text, l.name)
	}
	return strings.Join(text, ", ")
}

// set reads the flags that are lists, and the trace.
func (t *table) set(names, wanders, pods, path string) (err error) {
	for _, text := range strings.Split(wanders, ",") {
		w, err := strconv.ParseFloat(text, 64)
		if err != nil || w < 0 || w > 1 {
			return fmt.Errorf("-wander: want shares from 0 to 1, got %q", text)
		}
		t.wanders = append(t.wanders, w)
	}
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(loads, func(l load) bool { return l.name == name })
		if i < 0 {
			return fmt.Errorf("-loads: want some of L1, L5, L20 and L1 fast, got %q", name)
		}
		l := loads[i]
		if pods == "" {
			t.loads = append(t.loads, l)
			continue
		}
		for _, text := range strings.Split(pods, ",") {
			if l.pods, err = strconv.Atoi(text); err != nil || l.pods < 1 || l.pods > 64 {
				return fmt.Errorf("-pods: want numbers from 1 to 64, got %q", text)
			}
			t.loads = append(t.loads, l)
		}
	}
	if err := t.options(0).Check().Err(); err != nil {
		return fmt.Errorf("-%w", err)
	}
	if t.rollouts < 1 || !(t.hours > 0 && t.hours <= 24) {
		return errors.New("-rollouts, -hours: want at least 1 rollout of up to 24 hours")
	}
	if t.trace = standIn(); path != "" {
		t.trace, err = readAzure(path)
	}
	return err
}

func (t *table) print(kind string) error {
	switch kind {
	case "loads":
		t.figures()
		return nil
	case "calibration":
		return t.calibration()
	case "promise":
		return t.promise()
	case "effects":
		return t.effects()
	case "students":
		return t.students()
	case "month":
		return t.month()
	}
	return fmt.Errorf("-table: want loads, calibration, promise, effects, month or students, got %q", kind)
}
