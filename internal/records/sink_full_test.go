//go:build linux || darwin

package records

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// onAFullDisk runs test in a bubble with a limit on file size: the kernel accepts a part of a write, then none. The
// limit applies to the whole process, so the test runs in its own.
func onAFullDisk(t *testing.T, test func(t *testing.T, limit func(bytes int))) {
	const variable = "REPLAYD_TEST_FULL_DISK"
	if os.Getenv(variable) == "" {
		c := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
		c.Env = append(os.Environ(), variable+"=1")
		out, err := c.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" ")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	var whole syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &whole); err != nil {
		t.Fatal(err)
	}
	defer func() { // the process writes its coverage at the end
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &whole); err != nil {
			t.Error(err)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		test(t, func(bytes int) {
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(bytes), Max: whole.Max}); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// A full disk accepts a part of a record. The part is truncated at once, so that readers see whole lines, and later
// records follow the last whole one.
func TestSinkOnAFullDisk(t *testing.T) {
	onAFullDisk(t, func(t *testing.T, limit func(int)) {
		path := filepath.Join(t.TempDir(), "r.jsonl")
		s := newHeardSink()
		s.use(t, Options{Path: path})
		stop := running(t, s.Sink)
		s.Observe(numbered(0))
		pass(time.Second)
		limit(3*len(lines(0)) + 10)
		for n := 1; n < 5; n++ {
			s.Observe(numbered(n))
		}
		pass(time.Second)
		isFile(t, path, lines(0, 1, 2))
		log := lostLog("write " + path + ": file too large")
		s.heard(t, 2, log) // the partial record and the next one
		s.Observe(numbered(5))
		pass(sinkRetry)
		s.Observe(numbered(6))
		pass(time.Second)
		isFile(t, path, lines(0, 1, 2))
		s.heard(t, 4, log)
		limit(1 << 30)
		pass(sinkRetry)
		s.Observe(numbered(7))
		s.Observe(numbered(8))
		if err := stop(); err != nil {
			t.Error(err)
		}
		isFile(t, path, lines(0, 1, 2, 7, 8))
		s.heard(t, 4, log+`level=INFO msg="records are written again" path=`+path+" lost=4\n")
	})
}

// A nearly full disk accepts some records from time to time: the log reports one failure.
func TestSinkOnADiskThatIsNearlyFull(t *testing.T) {
	onAFullDisk(t, func(t *testing.T, limit func(int)) {
		path := filepath.Join(t.TempDir(), "r.jsonl")
		s := newHeardSink()
		s.use(t, Options{Path: path})
		stop := running(t, s.Sink)
		limit(len(lines(0)) + 10)
		for range 4 {
			s.Observe(numbered(1))
			pass(time.Second)
			s.Observe(numbered(2))
			pass(time.Second)
			isFile(t, path, lines(1))
			if err := os.Truncate(path, 0); err != nil { // another program makes room
				t.Fatal(err)
			}
			pass(sinkRetry)
		}
		s.heard(t, 4, lostLog("write "+path+": file too large"))
		if err := stop(); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("error %v, want that of the last write", err)
		}
	})
}

// Behind a symbolic link, a partial line is ended before the next record.
func TestSinkOnAFullDiskBehindALink(t *testing.T) {
	onAFullDisk(t, func(t *testing.T, limit func(int)) {
		dir := t.TempDir()
		path, target := filepath.Join(dir, "link"), filepath.Join(dir, "real")
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		s := newHeardSink()
		s.use(t, Options{Path: path})
		stop := running(t, s.Sink)
		limit(len(lines(0)) + 10)
		s.Observe(numbered(0))
		s.Observe(numbered(1))
		pass(time.Second)
		limit(1 << 30)
		pass(sinkRetry)
		s.Observe(numbered(2))
		s.Observe(numbered(3))
		pass(time.Second)
		isFile(t, target, lines(0)+lines(1)[:10]+"\n"+lines(2, 3))
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := s.losses.Load(); got != 1 {
			t.Errorf("%d records lost, want 1", got)
		}
	})
}
