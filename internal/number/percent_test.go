package number

import "testing"

// A share below 100 % is never rounded up to 100 %.
func TestPercent(t *testing.T) {
	for _, c := range []struct {
		n, of int64
		want  string
	}{{0, 0, "no data"}, {0, 3, "0 %"}, {3, 3, "100 %"}, {1, 3, "33.3 %"}, {99_999, 100_000, "99.99 %"}, {9_996, 10_000, "99.96 %"}, {999, 1000, "99.9 %"}} {
		if got := Percent(c.n, c.of); got != c.want {
			t.Errorf("%d of %d: want %s, got %s", c.n, c.of, c.want, got)
		}
	}
}
