// Package dcgm reads GPUs through NVIDIA's nv-hostengine with libdcgm, in builds with the tag dcgm.
package dcgm

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"replayd/internal/gpu"
)

// Options say which nv-hostengine to read, and what.
type Options struct {
	Address  string        // "localhost:5555", or "unix:///tmp/nv-hostengine"
	Interval time.Duration // at which the engine samples, 100 ms or more; a value older than three of them counts as none
	Fields   []*gpu.Field  // at most 128, the last XID not alone: it does not tell that a GPU is there; nil: Fields()

	// NoProfiling leaves out the fields of DCGM's profiling module (DCGM_FI_PROF_…). Before Hopper one process of a machine
	// has the counters behind them: set it beside another one that profiles but does not ask the same engine.
	NoProfiling bool

	Log *slog.Logger
}

// address is an address as the calls that connect want it.
type address struct {
	given string
	path  string // of a Unix socket; else empty
	host  string // as a label: the machine that the GPUs are in
}

// uri is the address as dcgmConnect_v3 wants it.
func (a address) uri() string {
	if a.path != "" {
		return "unix://" + a.path
	}
	return "tcp://" + a.given
}

// New is a source that reads GPUs through nv-hostengine, with libdcgm.so.4. Neither must be there yet: each Read tries
// anew what is missing. Reads must follow one another. They return when their context ends, even from a call into the
// library that hangs; no other call is then begun before that one has come back.
func New(o Options) (gpu.Source, error) {
	address, err := parseAddress(o.Address)
	if err != nil {
		return nil, fmt.Errorf("libdcgm: %w", err)
	}
	if o.Interval < 100*time.Millisecond {
		return nil, fmt.Errorf("libdcgm: interval: want 100ms or more, got %v", o.Interval)
	}
	if o.Fields == nil {
		o.Fields = gpu.Fields()
	}
	if o.NoProfiling {
		o.Fields = slices.DeleteFunc(slices.Clone(o.Fields), profiling)
	}
	if n := len(o.Fields); n < 1 || n > maxGroupFields {
		return nil, fmt.Errorf("libdcgm: want 1 to %d fields, got %d", maxGroupFields, n)
	}
	return open(o, address)
}

// profiling tells whether DCGM's profiling module gives the field.
func profiling(f *gpu.Field) bool {
	return len(f.Names) > 0 && strings.HasPrefix(f.Names[0], profilingPrefix)
}

// CheckAddress says what is wrong with the address of an nv-hostengine, in any build.
func CheckAddress(s string) error {
	_, err := parseAddress(s)
	return err
}

func parseAddress(s string) (address, error) {
	want := fmt.Errorf("want host:port or unix:///path, got %q", s)
	if path, ok := strings.CutPrefix(s, "unix://"); ok {
		// 107 bytes and a NUL are all that a sockaddr_un holds.
		if !strings.HasPrefix(path, "/") || len(path) > 107 || strings.Contains(path, "\x00") {
			return address{}, want
		}
		return address{given: s, path: path, host: gpu.Hostname()}, nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return address{}, want
	}
	// 92 bytes are all that libdcgm takes (splitIdentifierAndPort in DcgmClientHandler.cpp).
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" || len(s) > 92 || strings.ContainsAny(s, "/\x00") {
		return address{}, want
	}
	a := address{given: s, host: host}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		a.host = gpu.Hostname()
	}
	return a, nil
}
