//go:build !dcgm || !linux || !(amd64 || arm64)

package gpu

import (
	"errors"
	"testing"
	"time"
)

func TestDCGMAbsent(t *testing.T) {
	if _, err := NewDCGM(DCGMOptions{Address: "localhost:5555", Interval: time.Second}); !errors.Is(err, errNoDCGM) {
		t.Errorf("got %v, want %v", err, errNoDCGM)
	}
}
