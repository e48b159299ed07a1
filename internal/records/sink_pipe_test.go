//go:build unix

package records

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/measure/measuretest"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// A pipe that nobody reads from is an error and not a wait; one whose reader is slow takes records until 4 MiB wait, and
// nobody waits for it. What is not lost arrives whole.
func TestSinkOnAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newHeardSink()
	o := Options{Path: path, MaxBytes: 10, Keep: 1, Gzip: true}
	want := "records: open " + path + ": no such device or address (a socket, or a pipe that nobody reads)"
	if err := s.Use(o); err == nil || err.Error() != want {
		t.Fatalf("want %s, got %v", want, err)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	s.use(t, o) // at once, although it failed just now
	big := strings.Repeat("x", 512<<10)
	var taken, size int
	for n := range 12 {
		before := testutil.ToFloat64(s.lost)
		r := measuretest.Request(fmt.Sprint(n, big), 0, measure.OK, time.Millisecond)
		s.Observe(r)
		if testutil.ToFloat64(s.lost) == before {
			taken++
			size += len(appendRecord(nil, r))
		}
	}
	if taken != 7 { // each is a little over a half MiB
		t.Errorf("%d records taken, want 7", taken)
	}
	s.flush() // waits for sendPatience, and keeps what the pipe has no room for
	if n := int(s.writing.Load()); n < size-(1<<20) || n >= size {
		t.Errorf("%d bytes of %d left, want those beyond the pipe's buffer", n, size)
	}
	stop := running(t, s.Sink)
	var got []byte
	for bytes.Count(got, []byte{'\n'}) < taken {
		b := make([]byte, 64<<10)
		n, err := reader.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b[:n]...)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	for n, line := range strings.SplitAfter(string(got), "\n")[:taken] {
		if want := string(appendRecord(nil, measuretest.Request(fmt.Sprint(n, big), 0, measure.OK, time.Millisecond))); line != want {
			t.Errorf("record %d is not what was observed: %d bytes, want %d", n, len(line), len(want))
		}
	}
	s.heard(t, 5, `level=ERROR msg="records are lost: the file cannot be written" err="records: `+path+` does not take them in time"
level=INFO msg="records are written again" path=`+path+" lost=5\n")
}
