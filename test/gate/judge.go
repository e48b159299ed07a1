package main

import (
	"slices"
	"strings"
)

// mostFailures is how many root tests may fail at the first look of a gate. It is gotestsum's --rerun-fails-max-failures.
const mostFailures = 5

type kind int

const (
	green   kind = iota // it passed at the first look
	flaky               // it passed at the second look
	unclear             // it failed, and has not had the look that may clear it
	red                 // its fault is proven
)

// A verdict is about a package.
type verdict struct {
	is    kind
	why   string
	tests []string // failed at the first look; none if the package failed without a failed test
}

// judge says what the looks at a package prove. A failed test is cleared by a look in which it passes and so does the
// package. A failure without a failed test, and a timeout, which leaves tests unrun, are cleared by a look at the whole
// package, with a test in it. Nothing clears a panic or a package that does not build.
func (h history) judge() verdict {
	first, last := h[0], h[len(h)-1]
	v := verdict{tests: first.failed()}
	switch why := h.broken(); {
	case why != "":
		v.is, v.why = red, why
	case first.ok():
		v.is = green
	case len(h) > 1 && last.whole && last.ok() && last.ran():
		v.is = flaky
	case len(h) > 1 && last.whole:
		v.is, v.why = red, "it failed at both looks"
	case first.timedOut || len(v.tests) == 0:
		v.is, v.why = unclear, "it needs a look as a whole"
	default:
		v.is, v.why = h.cleared(v.tests)
	}
	return v
}

// broken says what no second look clears.
func (h history) broken() string {
	for _, k := range h {
		switch {
		case k.action == "":
			return "it has no end"
		case !k.built:
			return "it does not build"
		case k.panicked && !k.ok():
			return "it panicked"
		}
	}
	return ""
}

func (k *look) ran() bool {
	for _, ended := range k.ended {
		if ended == "pass" {
			return true
		}
	}
	return false
}

// cleared says what the second looks at root tests prove.
func (h history) cleared(tests []string) (is kind, why string) {
	is = flaky
	var failed []string
	for _, test := range tests {
		again := slices.DeleteFunc(slices.Clone(h[1:]), func(k *look) bool { return k.ended[test] == "" })
		switch {
		case slices.ContainsFunc(again, func(k *look) bool { return k.ended[test] == "pass" && k.ok() }):
		case len(again) > 0:
			failed = append(failed, test)
		default:
			is, why = unclear, "it needs a second look"
		}
	}
	if len(failed) > 0 {
		return red, "failed at each look: " + strings.Join(failed, ", ")
	}
	return is, why
}

// failedRoots counts the root tests that failed at the first looks.
func (l looks) failedRoots() (n int) {
	for _, h := range l {
		n += len(h[0].failed())
	}
	return n
}
