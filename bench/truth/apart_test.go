//go:build bench && linux

package truth_test

import (
	"slices"
	"testing"
)

func TestApart(t *testing.T) {
	stamped := []int64{10, 20, 30, 40}
	for _, c := range []struct{ seen, want []int64 }{
		{[]int64{11, 21, 31, 41}, []int64{11, 21, 31, 41}},
		{[]int64{11, 31, 41}, []int64{11, 31, 31, 41}},
		{[]int64{41}, []int64{41, 41, 41, 41}},
		{[]int64{31, 42}, []int64{31, 31, 31, 42}},
		{[]int64{9, 41}, nil},      // before the first stamp
		{[]int64{11, 12, 41}, nil}, // two for one stamp
		{[]int64{11, 31}, nil},     // none for the last one
	} {
		if got := apart(c.seen, stamped); !slices.Equal(got, c.want) {
			t.Errorf("%v: want %v, got %v", c.seen, c.want, got)
		}
	}
}
