package records

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/test/measuretest"

	"github.com/google/go-cmp/cmp"
)

// told makes the sink write numbered ledgers.
func (s *heardSink) told(workloads int) (line func(n int) string) {
	n := 0
	line = func(n int) (all string) {
		for i := range workloads {
			all += fmt.Sprintf(`{"ledger":{"n":%d,"workload":"%d"}}`+"\n", n, i)
		}
		return all
	}
	s.Ledgers = func(b []byte) []byte { n++; return append(b, line(n)...) }
	return line
}

// Ledgers are written before the first record of an opened file, every minute and at the end. A change of path writes
// the last ledgers of the old file and the first of the new one.
func TestSinkTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "r.jsonl")
		write(t, path, "theirs\n")
		s := newHeardSink()
		told := s.told(2)
		s.use(t, Options{Path: path})
		stop := running(t, s.Sink)
		pass(time.Second)
		isFile(t, path, "theirs\n") // no ledgers before the first record
		s.Observe(numbered(1))
		pass(58 * time.Second)
		s.Observe(numbered(2))
		want := "theirs\n" + told(1) + lines(1, 2)
		pass(999 * time.Millisecond)
		isFile(t, path, "theirs\n"+told(1)+lines(1))
		pass(time.Millisecond) // a minute has passed
		isFile(t, path, want+told(2))
		pass(time.Minute)
		want += told(2) + told(3)
		isFile(t, path, want)
		s.Observe(numbered(3))
		s.use(t, Options{Path: path + "2"})
		isFile(t, path, want+lines(3)+told(4))
		s.Observe(numbered(4))
		if err := stop(); err != nil {
			t.Error(err)
		}
		isFile(t, path+"2", told(5)+lines(4)+told(6))
		s.heard(t, 0, "")
	})
}

// Every rotated file begins with ledgers and holds at least one record, even if the ledgers fill the file.
func TestRotatedFilesBeginWithLedgers(t *testing.T) {
	for _, most := range []int{1, 30, 100, len(lines(1)), 3 * len(lines(1)), 5000} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "r.jsonl")
			s := newHeardSink()
			told := s.told(3)
			s.use(t, Options{Path: path, MaxBytes: int64(most), Keep: 1000})
			stop := running(t, s.Sink)
			want := ""
			for n := range 9 {
				s.Observe(numbered(n))
				want += lines(n)
				pass(time.Duration(n) * 10 * time.Second)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			all, _ := files(t, path)
			got := ""
			for i, text := range all {
				if i < len(all)-1 && most > 2*len(told(9))+len(lines(9)) && len(text) > most {
					t.Errorf("at most %d: file %d has %d bytes", most, i, len(text))
				}
				var n int
				if _, err := fmt.Sscanf(text, `{"ledger":{"n":%d,`, &n); err != nil || most > len(told(9)) && !strings.HasPrefix(text, told(n)) {
					t.Errorf("at most %d: file %d of %d does not begin with ledgers:\n%s", most, i, len(all), text)
				}
				for line := range strings.Lines(text) {
					if !strings.HasPrefix(line, `{"ledger":{"n":`) {
						got += line
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("at most %d: records -want +got:\n%s", most, diff)
			}
			s.heard(t, 0, "")
		})
	}
}

// Lost ledgers are not counted as lost records.
func TestLostLedgersAreNoRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHeardSink()
		s.told(3)
		s.use(t, Options{Path: "/dev/full"})
		stop := running(t, s.Sink)
		s.Observe(numbered(1))
		pass(2 * time.Minute)
		if err := stop(); err == nil {
			t.Error("want an error at the end")
		}
		s.heard(t, 1, `level=ERROR msg="records are lost: the file cannot be written" err="records: write /dev/full: no space left on device"`+"\n")
	})
}

// The last ledgers are written even if the pending bytes are at their limit.
func TestLedgersAtTheEndHaveRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	s := newHeardSink()
	told := s.told(2)
	s.use(t, Options{Path: path})
	r := measuretest.Request(strings.Repeat("x", 64<<10), 0, measure.OK, time.Millisecond)
	for len(s.pending) < sinkBound-len(appendRecord(nil, r)) {
		s.Observe(r)
	}
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); !strings.HasSuffix(got, told(2)) {
		t.Errorf("want ledgers at the end, got …%.200q", got[len(got)-200:])
	}
	s.heard(t, 0, "")
}
