package dcgm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"replayd/internal/gpu"
)

func TestDCGMAddress(t *testing.T) {
	here := gpu.Hostname()
	for _, c := range []struct{ in, uri, path, host string }{
		{"localhost:5555", "tcp://localhost:5555", "", here},
		{"127.0.0.1:5555", "tcp://127.0.0.1:5555", "", here},
		{"[::1]:5555", "tcp://[::1]:5555", "", here},
		{"node-7.example:65535", "tcp://node-7.example:65535", "", "node-7.example"},
		{"10.0.0.7:5555", "tcp://10.0.0.7:5555", "", "10.0.0.7"},
		{"unix:///tmp/nv-hostengine", "unix:///tmp/nv-hostengine", "/tmp/nv-hostengine", here},
	} {
		a, err := parseAddress(c.in)
		if err := CheckAddress(c.in); err != nil {
			t.Error(err)
		}
		if err != nil || a.uri() != c.uri || a.path != c.path || a.host != c.host {
			t.Errorf("%s: got %+v, %s, %v", c.in, a, a.uri(), err)
		}
	}
	for _, in := range []string{
		"", "localhost", "localhost:", ":5555", "localhost:0", "localhost:65536", "localhost:http", "http://localhost:5555",
		"unix://", "unix://tmp/x", "unix:///" + strings.Repeat("x", 107), "::1:5555", strings.Repeat("x", 90) + ":5555",
		"a\x00b:5555", "unix:///a\x00b",
	} {
		if a, err := parseAddress(in); err == nil {
			t.Errorf("%q: got %+v, want an error", in, a)
		}
		if err, want := CheckAddress(in), fmt.Sprintf("want host:port or unix:///path, got %q", in); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestDCGMOptions(t *testing.T) {
	if n := len(gpu.Fields()); n > maxGroupFields {
		t.Errorf("want at most %d fields, got %d", maxGroupFields, n)
	}
	for _, c := range []struct {
		name, want string
		o          Options
	}{
		{"address", `libdcgm: want host:port or unix:///path, got "localhost"`, Options{Address: "localhost", Interval: time.Second}},
		{"no interval", "libdcgm: interval: want 100ms or more, got 0s", Options{Address: "localhost:5555"}},
		{"interval", "libdcgm: interval: want 100ms or more, got 99ms", Options{Address: "localhost:5555", Interval: 99 * time.Millisecond}},
	} {
		if _, err := New(c.o); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}
