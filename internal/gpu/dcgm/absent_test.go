//go:build !dcgm || !linux || !(amd64 || arm64)

package dcgm

import (
	"errors"
	"testing"
	"time"
)

func TestAbsent(t *testing.T) {
	if _, err := New(Options{Address: "localhost:5555", Interval: time.Second}); !errors.Is(err, errAbsent) {
		t.Errorf("got %v, want %v", err, errAbsent)
	}
}
