package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"testing"
)

func TestList(t *testing.T) {
	var l List
	if l.Err() != nil || l.Line() != "" {
		t.Errorf("want no error of no faults, got %v", l.Err())
	}
	l.OneOf("mode", "loops", "once", "loop")
	l.OneOf("mode", "loop", "once", "loop")
	l.AtLeast("lanes", 0, 1)
	l.Between("speed", math.NaN(), 0, 1)
	l.Add("", "want a\nb")
	if want := "w.mode: want once or loop, got \"loops\" (did you mean loop?)\nw.lanes: want an integer ≥ 1, got 0\nw.speed: want a number from 0 to 1, got NaN\nw: want a\\nb"; l.Under("w").Error() != want {
		t.Errorf("want\n%s\ngot\n%s", want, l.Under("w"))
	}
	if want := "mode: want once or loop, got \"loops\" (did you mean loop?); lanes: want an integer ≥ 1, got 0; speed: want a number from 0 to 1, got NaN; want a\\nb"; l.Line() != want {
		t.Errorf("want\n%s\ngot\n%s", want, l.Line())
	}
	named := l.Named(func(key string) string { return "--" + key })
	if named[1].Key != "--lanes" || l[1].Key != "lanes" {
		t.Errorf("got %v and %v", named, l)
	}
	if f := (Fault{Place: "a.yaml:3", Key: "drain", Want: "want a duration"}); f.Error() != "a.yaml:3: drain: want a duration" {
		t.Errorf("got %v", f)
	}
}

// Of finds the faults in errors that wrap and join them. An error of others is one fault, whatever its text looks like.
func TestOf(t *testing.T) {
	var l List
	l.Add("a", "want 1, got 2")
	l.Add("b[0]", "want 3, got 4")
	_, missing := os.Open("no\nsuch: file")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"none":            {nil, ""},
		"a list":          {l, "x.a: want 1, got 2\nx.b[0]: want 3, got 4"},
		"within an error": {fmt.Errorf("target t: %w", l.Err()), "x.a: want 1, got 2\nx.b[0]: want 3, got 4"},
		"joined":          {errors.Join(l, errors.New("c: want 5")), "x.a: want 1, got 2\nx.b[0]: want 3, got 4\nx: c: want 5"},
		"within a join within an error": {
			fmt.Errorf("target t: %w", errors.Join(errors.New("c"), l[:1])), "x: c\nx.a: want 1, got 2",
		},
		"texts alone":       {fmt.Errorf("all: %w", errors.Join(errors.New("c"), errors.New("d"))), `x: all: c\nd`},
		"a path":            {missing, `x: open no\nsuch: file: no such file or directory`},
		"below another key": {At("y", At("z", missing)), `x.y.z: open no\nsuch: file: no such file or directory`},
		"without a key":     {fmt.Errorf("page: %w", Of(missing).Err()), `x: page: open no\nsuch: file: no such file or directory`},
		"one":               {fmt.Errorf("page: %w", Fault{Key: "k", Want: "w"}), "x.k: w"},
	} {
		got := At("x", c.err)
		if got.Error() != c.want {
			t.Errorf("%s: want\n%s\ngot\n%s", name, c.want, got)
		}
	}
	if err := At("trace.path", missing).Err(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("want the cause, got %v", err)
	}
}
