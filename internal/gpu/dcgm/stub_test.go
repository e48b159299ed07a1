//go:build dcgm && linux && (amd64 || arm64)

package dcgm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"replayd/internal/gpu"
	"replayd/test/machine"
)

// A stub is a libdcgm.so.4 built from testdata/libdcgm in its own folder. Each test has its own stub, because the
// engine's state is in the library.
type stub struct {
	folder string
	log    *bytes.Buffer // log output of the sources
}

// compiled caches the library's files by build flags.
var compiled = struct {
	sync.Mutex
	byFlags map[string][]byte
}{byFlags: map[string][]byte{}}

func newStub(t testing.TB, flags ...string) *stub {
	t.Helper()
	compiled.Lock()
	defer compiled.Unlock()
	s := &stub{folder: t.TempDir(), log: &bytes.Buffer{}}
	key := strings.Join(flags, " ")
	file := compiled.byFlags[key]
	if file == nil {
		cc, err := exec.LookPath("cc")
		if err != nil {
			machine.Lacks(t, "C compiler to build the library with", err)
		}
		args := []string{"-shared", "-fPIC", "-pthread", "-O1", "-Wall", "-Werror", "-Wl,-soname,libdcgm.so.4,-Bsymbolic", "-o", s.path()}
		sources, err := filepath.Glob("testdata/libdcgm/*.c")
		if err != nil || len(sources) == 0 {
			t.Fatalf("want its sources, got %v", err)
		}
		out, err := exec.CommandContext(t.Context(), cc, slices.Concat(args, flags, sources)...).CombinedOutput()
		if err != nil {
			t.Fatalf("cc: %v\n%s", err, out)
		}
		if file, err = os.ReadFile(s.path()); err != nil {
			t.Fatal(err)
		}
		compiled.byFlags[key] = file
	}
	if err := os.WriteFile(s.path(), file, 0o755); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stub) path() string { return filepath.Join(s.folder, dcgmLibrary) }

// play writes the control file atomically.
func (s *stub) play(t testing.TB, lines ...string) {
	t.Helper()
	next := filepath.Join(s.folder, "next")
	if err := os.WriteFile(next, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(s.folder, "control")); err != nil {
		t.Fatal(err)
	}
}

// calls returns the calls since the last use of calls.
func (s *stub) calls(t testing.TB) []string {
	t.Helper()
	path := filepath.Join(s.folder, "calls")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil && len(text) > 0 {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// open returns a source that reads the stub, every 5 s by default.
func (s *stub) open(t testing.TB, o Options) *dcgmSource {
	t.Helper()
	if o.Address == "" {
		o.Address = "localhost:5555"
	}
	if o.Interval == 0 {
		o.Interval = 5 * time.Second
	}
	o.Log = slog.New(slog.NewTextHandler(s.log, nil))
	source, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	d := source.(*dcgmSource)
	d.name = s.path()
	if o.fields != nil {
		d.options.fields = o.fields
	}
	return d
}

// closeSource closes a source at the end of the test; no call may hang then.
func closeSource(t testing.TB, d *dcgmSource) {
	t.Helper()
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// readDCGM calls Read, which must succeed.
func readDCGM(t testing.TB, d *dcgmSource) []gpu.Device {
	t.Helper()
	r, err := d.Read(context.Background())
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return r.Devices
}

// failsDCGM calls Read, which must fail with all of words in its error.
func failsDCGM(t testing.TB, d *dcgmSource, words ...string) {
	t.Helper()
	r, err := d.Read(context.Background())
	wantsError(t, err, words...)
	if r.Devices != nil {
		t.Errorf("got an error and %d devices", len(r.Devices))
	}
}

func wantsError(t testing.TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got %q, want %q in it", err, w)
		}
	}
}

// begins counts the calls with a prefix.
func begins(calls []string, with string) (n int) {
	for _, c := range calls {
		if strings.HasPrefix(c, with) {
			n++
		}
	}
	return n
}

// stubValue returns the stub's value for a field of an entity, in base units.
func stubValue(f *gpu.Field, entity uint32) float64 {
	raw := float64(f.ID)*100 + float64(entity)
	switch {
	case f.Float && f.ID < 200:
		raw = float64(f.ID)/4096 + float64(entity)
	case f.Float:
		raw = float64(f.ID)/4096 + float64(entity)/64
	case f.ID == 300 || f.ID == 395 || f.ID == 396:
		raw = float64((uint32(f.ID) + entity) % 2)
	case f.ID == 140 || f.ID == 150 || f.ID == 203 || f.ID == 204:
		raw = float64(uint32(f.ID)%100 + entity)
	}
	d, r := gpu.Device{Values: map[*gpu.Field]float64{}}, gpu.Reading{}
	r.Add(&d, f, f.Names[0], raw)
	return d.Values[f]
}

// complete checks that a device has the stub's values for exactly these fields.
func complete(t testing.TB, d gpu.Device, entity uint32, fields []*gpu.Field) {
	t.Helper()
	for _, f := range fields {
		if got, ok := d.Values[f]; !ok || got != stubValue(f, entity) {
			t.Errorf("GPU %s %s: field %d: got %v, %t, want %v", d.Index, d.Instance, f.ID, got, ok, stubValue(f, entity))
		}
	}
	if len(d.Values) != len(fields) {
		t.Errorf("GPU %s %s: got %d values, want %d", d.Index, d.Instance, len(d.Values), len(fields))
	}
}

// except returns the vocabulary without these fields.
func except(ids ...uint16) []*gpu.Field {
	return slices.DeleteFunc(gpu.Fields(), func(f *gpu.Field) bool { return slices.Contains(ids, f.ID) })
}

func uuid(gpu int) string { return fmt.Sprintf("GPU-%08x-0000-0000-0000-000000000000", gpu) }
