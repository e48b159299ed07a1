// Package dcgm reads GPUs through NVIDIA's nv-hostengine with libdcgm, in builds with the tag dcgm.
package dcgm

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"replayd/internal/fault"
	"replayd/internal/gpu"
)

// Options configures a source.
type Options struct {
	Address  string        // "localhost:5555", or "unix:///tmp/nv-hostengine"
	Interval time.Duration // sampling interval, at least 100 ms; a value older than three intervals is ignored

	Log    *slog.Logger
	fields []*gpu.Field
}

// address is an address in the forms that dcgmConnect_v2 and dcgmConnect_v3 need.
type address struct {
	given string
	path  string // path of a Unix socket; else empty
	host  string // value of the hostname label: the machine with the GPUs
}

// uri returns the address for dcgmConnect_v3.
func (a address) uri() string {
	if a.path != "" {
		return "unix://" + a.path
	}
	return "tcp://" + a.given
}

// New returns a source that reads GPUs through nv-hostengine with libdcgm.so.4. Neither has to exist yet: each Read
// tries again to load and connect. Calls of Read must not overlap. Read returns when its context ends, even if a call
// into the library hangs; no other call starts before that call has returned.
func New(o Options) (gpu.Source, error) {
	address, err := parseAddress(o.Address)
	if err != nil {
		return nil, fault.At("libdcgm", err)
	}
	if o.Interval < 100*time.Millisecond {
		return nil, fault.Fault{Key: "libdcgm", Want: fmt.Sprintf("interval: want 100ms or more, got %v", o.Interval)}
	}
	o.fields = gpu.Fields()
	return open(o, address)
}

// profiling reports whether a field belongs to DCGM's profiling module.
func profiling(f *gpu.Field) bool {
	return len(f.Names) > 0 && strings.HasPrefix(f.Names[0], profilingPrefix)
}

// CheckAddress returns an error if the address of an nv-hostengine is invalid. It works in any build.
func CheckAddress(s string) error {
	_, err := parseAddress(s)
	return err
}

func parseAddress(s string) (address, error) {
	want := fmt.Errorf("want host:port or unix:///path, got %q", s)
	if path, ok := strings.CutPrefix(s, "unix://"); ok {
		// A sockaddr_un holds 107 bytes and a NUL.
		if !strings.HasPrefix(path, "/") || len(path) > 107 || strings.Contains(path, "\x00") {
			return address{}, want
		}
		return address{given: s, path: path, host: gpu.Hostname()}, nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return address{}, want
	}
	// libdcgm accepts at most 92 bytes (splitIdentifierAndPort in DcgmClientHandler.cpp).
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" || len(s) > 92 || strings.ContainsAny(s, "/\x00") {
		return address{}, want
	}
	return address{given: s, host: gpu.Machine(host)}, nil
}
