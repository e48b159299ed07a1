package cli

import (
	"testing"
	"time"
)

// next: is the next boundary that is not about to pass.
func TestStartInstant(t *testing.T) {
	at := func(text string) time.Time {
		instant, err := time.Parse(time.RFC3339Nano, "2026-01-02T"+text+"Z")
		if err != nil {
			t.Fatal(err)
		}
		return instant
	}
	for _, c := range [][3]string{ // --start, now, want
		{"next:1m", "10:00:00", "10:01:00"},
		{"next:1m", "10:00:59.7", "10:01:00"},
		{"next:1m", "10:00:59.75", "10:02:00"},
		{"next:1m", "10:00:59.999", "10:02:00"},
		{"next:1s", "10:00:00", "10:00:01"},
		{"2026-01-02T10:00:00Z", "11:00:00", "10:00:00"},
	} {
		if got, err := StartInstant(c[0], at(c[1])); err != nil || !got.Equal(at(c[2])) {
			t.Errorf("%s at %s: want %s, got %v, %v", c[0], c[1], c[2], got, err)
		}
	}
	for _, bad := range []string{"next:", "next:0s", "next:soon", "10:00"} {
		if got, err := StartInstant(bad, at("10:00:00")); err == nil {
			t.Errorf("%s: want an error, got %v", bad, got)
		}
	}
}
