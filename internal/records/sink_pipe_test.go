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
	"replayd/test/measuretest"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// A pipe without a reader is an error and does not block. With a slow reader, up to 4 MiB of records are kept, and
// Observe does not block. Records that are not lost arrive whole.
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
	s.use(t, o) // opens at once, without waiting for sinkRetry
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
	if taken != 7 { // each record is slightly longer than 512 KiB
		t.Errorf("%d records taken, want 7", taken)
	}
	s.flush() // blocks for sendPatience and keeps the rest
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
