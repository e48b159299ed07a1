package machine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestSettle(t *testing.T) {
	for name, c := range map[string]struct {
		read  func(age time.Duration) (float64, error)
		load  float64
		quiet bool
		after time.Duration
	}{
		"quiet":         {func(time.Duration) (float64, error) { return 0.9, nil }, 0.9, true, 0},
		"busy":          {func(time.Duration) (float64, error) { return 8.5, nil }, 8.5, false, patience},
		"quiet at last": {func(age time.Duration) (float64, error) { return 5 - age.Minutes(), nil }, 1, true, 4 * time.Minute},
		"unknown":       {func(time.Duration) (float64, error) { return 0, errors.ErrUnsupported }, 0, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				load, quiet := settle(func() (float64, error) { return c.read(time.Since(began)) }, 2)
				if took := time.Since(began); load != c.load || quiet != c.quiet || took != c.after {
					t.Errorf("want %v, %v after %v, got %v, %v after %v", c.load, c.quiet, c.after, load, quiet, took)
				}
			})
		})
	}
}
