package records

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/test/measuretest"

	"github.com/google/go-cmp/cmp"
)

// A shelf models the files: each record goes to the newest file unless the file would become too long.
type shelf struct {
	Options
	old    []string // oldest first
	gz     []bool   // which of them are compressed
	newest string
}

func (s *shelf) add(line string) {
	if s.MaxBytes > 0 && s.newest != "" && int64(len(s.newest)+len(line)) > s.MaxBytes {
		s.old, s.gz = append(s.old, s.newest), append(s.gz, false)
		drop := max(len(s.old)-s.Keep, 0)
		s.old, s.gz, s.newest = s.old[drop:], s.gz[drop:], ""
	}
	s.newest += line
}

// compress models the state after all compressions.
func (s *shelf) compress() {
	if s.Gzip && s.MaxBytes > 0 {
		for i := range s.gz {
			s.gz[i] = true
		}
	}
}

// With random sizes, counts and compression, changed with and without a restart, the files hold exactly the last
// records, whole and in order, split at the right places, and there are no other files.
func TestRotation(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { rotation(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func rotation(t *testing.T, rnd *rand.Rand) {
	dir := t.TempDir()
	want := shelf{Options: Options{Path: filepath.Join(dir, "r.jsonl")}}
	change := func() {
		want.MaxBytes = []int64{0, 1, 900, 5000, 20000, 60000}[rnd.IntN(6)]
		want.Keep, want.Gzip = rnd.IntN(5), rnd.IntN(2) == 0
	}
	change()
	s := newHeardSink()
	s.use(t, want.Options)
	stop := running(t, s.Sink)
	for n := range 12 {
		for i := range rnd.IntN(40) {
			r := measuretest.Request(fmt.Sprintf("w/%d/%d/%s", n, i, strings.Repeat("x", rnd.IntN(2000))), 0, measure.OK, time.Millisecond)
			s.Observe(r)
			want.add(string(appendRecord(nil, r)))
		}
		if rnd.IntN(4) > 0 {
			pass(time.Second)
		} else { // restart
			if err := stop(); err != nil {
				t.Error(err)
			}
			s.heard(t, 0, "")
			s = newHeardSink()
			s.use(t, want.Options)
			stop = running(t, s.Sink)
			synctest.Wait()
		}
		want.compress()
		var names []string
		for i, gz := range want.gz {
			name := fmt.Sprintf(".%d", len(want.gz)-i)
			if gz {
				name += compressed
			}
			names = append(names, name)
		}
		contents, got := files(t, want.Path)
		if diff := cmp.Diff(append(names, ""), got); diff != "" {
			t.Fatalf("step %d, %+v: files -want +got:\n%s", n, want.Options, diff)
		}
		if diff := cmp.Diff(append(slices.Clone(want.old), want.newest), contents); diff != "" {
			t.Fatalf("step %d, %+v: contents -want +got:\n%s", n, want.Options, diff)
		}
		if all := list(t, dir); len(all) != len(got) {
			t.Fatalf("step %d, %+v: want %d files, got %q", n, want.Options, len(got), all)
		}
		if rnd.IntN(3) == 0 {
			change()
			s.use(t, want.Options)
			synctest.Wait()
			want.compress()
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	s.heard(t, 0, "")
}

// Files left by a crash or another program are used, completed or removed without loss of records.
func TestRotationAfterACrash(t *testing.T) {
	f := func(name string, keep int, gzip bool, before, want map[string]string) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "r")
				for suffix, text := range before {
					write(t, path+suffix, text)
				}
				s := newHeardSink()
				s.use(t, Options{Path: path, MaxBytes: 1, Keep: keep, Gzip: gzip})
				stop := running(t, s.Sink)
				synctest.Wait()
				s.Observe(numbered(1))
				pass(time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				got := map[string]string{}
				for _, name := range list(t, dir) {
					got[strings.TrimPrefix(name, "r")] = content(t, filepath.Join(dir, name))
				}
				want[""] = lines(1)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("files -want +got:\n%s", diff)
				}
				s.heard(t, 0, "")
			})
		})
	}
	type m = map[string]string
	f("half a shift", 3, false, m{"": "c\n", ".2": "b\n", ".3": "a\n"}, m{".1": "c\n", ".2": "b\n", ".3": "a\n"})
	f("before the last step", 2, false, m{".1": "b\n", ".2": "a\n"}, m{".1": "b\n", ".2": "a\n"})
	f("half a compression", 3, true, m{"": "b\n", ".1": "a\n", ".gz.tmp": "\x1f\x8b"}, m{".1.gz": "b\n", ".2.gz": "a\n"})
	f("a compression that is not wanted any more", 3, false, m{"": "b\n", ".1": "a\n", ".gz.tmp": "\x1f"}, m{".1": "b\n", ".2": "a\n"})
	f("both are there", 3, true, m{"": "b\n", ".1": "a\n", ".1.gz": "not whole"}, m{".1.gz": "b\n", ".2.gz": "a\n"})
	f("both are too old", 1, false, m{"": "b\n", ".1": "a\n", ".1.gz": "", ".2": "", ".2.gz": ""}, m{".1": "b\n"})
	f("not ours", 1, true, m{"": "b\n", ".20260102": "a\n", ".1.bak": "c\n"}, m{".1.gz": "b\n", ".20260102": "a\n", ".1.bak": "c\n"})
}

// A directory at the path of a rotated file stops the rotation: no file exceeds its bound.
func TestRotationFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "r")
		if err := os.MkdirAll(filepath.Join(oldRecords(path, 1), "full"), 0o700); err != nil {
			t.Fatal(err)
		}
		s := newHeardSink()
		s.use(t, Options{Path: path, MaxBytes: 1, Keep: 1})
		stop := running(t, s.Sink)
		for n := range 10 {
			s.Observe(numbered(n))
			pass(time.Second)
		}
		isFile(t, path, lines(0))
		log := lostLog("remove " + oldRecords(path, 1) + ": directory not empty")
		s.heard(t, 9, log)
		if err := os.RemoveAll(oldRecords(path, 1)); err != nil {
			t.Fatal(err)
		}
		pass(sinkRetry)
		s.Observe(numbered(1))
		if err := stop(); err != nil {
			t.Error(err)
		}
		isFile(t, path, lines(1))
		isFile(t, oldRecords(path, 1), lines(0))
		s.heard(t, 9, log+`level=INFO msg="records are written again" path=`+path+" lost=9\n")
	})
}
