package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// A look is one run of one package's tests.
type look struct {
	whole    bool // all tests were asked for: the first look, and those of the second file
	action   string
	ended    map[string]string // action by test
	said     map[string][]string
	built    bool
	panicked bool
	timedOut bool
}

func (k *look) ok() bool { return k.action == "pass" || k.action == "skip" }

// failed returns the root tests that failed.
func (k *look) failed() (tests []string) {
	for _, test := range slices.Sorted(maps.Keys(k.ended)) {
		if k.ended[test] == "fail" && !strings.Contains(test, "/") {
			tests = append(tests, test)
		}
	}
	return tests
}

// looks has the looks at each package, in their order.
type looks map[string]history

type history []*look

func (l looks) packages() []string { return slices.Sorted(maps.Keys(l)) }

// An event is a line of `go test -json`: see `go doc test2json` and, for the two of a build, `go help buildjson`.
type event struct {
	Action, Package, Test, Output, FailedBuild string
}

var (
	timeout = regexp.MustCompile(`^(panic: test timed out after |\*\*\* Test killed with quit: ran too long)`)
	crash   = regexp.MustCompile(`^(panic: |fatal error: |SIG(SEGV|BUS|ABRT|FPE|ILL): )`)
	unbuilt = regexp.MustCompile(`^FAIL\t\S+ \[(build|setup) failed\]`)
)

// read reads the looks of both files.
func read(paths ...string) (looks, error) {
	l := looks{}
	for i, path := range paths {
		if err := l.add(path, i > 0); err != nil {
			return nil, err
		}
	}
	if len(l) == 0 {
		return nil, fmt.Errorf("%s: want the events of `go test -json`, got none", strings.Join(paths, ", "))
	}
	return l, nil
}

func (l looks) add(path string, whole bool) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReader(file)
	open := map[string]*look{}
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			break
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s:%d: want an event of `go test -json`: %w", path, number, err)
		}
		if e.Package == "" { // build-output and build-fail name a build; the package that needed it fails too
			continue
		}
		k := open[e.Package]
		if k == nil {
			k = &look{whole: whole || len(l[e.Package]) == 0, built: true, ended: map[string]string{}, said: map[string][]string{}}
			open[e.Package], l[e.Package] = k, append(l[e.Package], k)
		}
		if k.take(e) {
			delete(open, e.Package)
		}
	}
	return nil
}

// take adds an event to the look, and reports whether it is the last one.
func (k *look) take(e event) (last bool) {
	switch e.Action {
	case "output":
		k.said[e.Test] = append(k.said[e.Test], e.Output)
		switch {
		case timeout.MatchString(e.Output):
			k.timedOut = true
		case unbuilt.MatchString(e.Output):
			k.built = false
		case crash.MatchString(e.Output):
			k.panicked = true
		}
	case "pass", "fail", "skip":
		if e.Test != "" {
			k.ended[e.Test] = e.Action
			return false
		}
		k.action, k.built = e.Action, k.built && e.FailedBuild == ""
		return true
	}
	return false
}
