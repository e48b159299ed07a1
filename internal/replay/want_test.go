package replay

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

var errScrape = errors.New("http://engine/metrics: connection refused")

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: want %v, got %v", what, w, g)
	}
}
