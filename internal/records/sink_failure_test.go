package records

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"replayd/test/machine"
)

// lostLog returns the log line of an error.
func lostLog(err string) string {
	return `level=ERROR msg="records are lost: the file cannot be written" err="records: ` + err + "\"\n"
}

func TestSinkOnAFullDevice(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		machine.Lacks(t, "/dev/full", err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newHeardSink()
		s.use(t, Options{Path: "/dev/full", MaxBytes: 1, Gzip: true})
		stop := running(t, s.Sink)
		for range 20 { // the file is tried three more times
			s.Observe(numbered(1))
			pass(time.Second)
		}
		s.heard(t, 20, lostLog("write /dev/full: no space left on device"))
		err := stop()
		if !errors.Is(err, syscall.ENOSPC) || err.Error() != "records: write /dev/full: no space left on device" {
			t.Errorf("error %v, want that of the device", err)
		}
	})
}

// If the last write fails, its records are counted as lost and Run returns the error.
func TestSinkFailsInTheLastWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHeardSink()
		s.use(t, Options{Path: "/dev/full"})
		stop := running(t, s.Sink)
		s.Observe(numbered(1))
		s.Observe(numbered(2))
		if err := stop(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("error %v, want that of the device", err)
		}
		s.heard(t, 2, lostLog("write /dev/full: no space left on device"))
	})
}

// The path is below a regular file, which later becomes a directory.
func TestSinkWithAPathThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "dir")
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "r.jsonl")
		s := newHeardSink()
		o := Options{Path: path}
		want := "records: open " + path + ": not a directory"
		for range 2 { // the same options open the file again
			if err := s.Use(o); err == nil || err.Error() != want {
				t.Errorf("want %s, got %v", want, err)
			}
		}
		stop := running(t, s.Sink)
		s.Observe(numbered(1))
		pass(sinkRetry + time.Second)
		s.Observe(numbered(2))
		pass(time.Second)
		s.heard(t, 2, "") // Use does not log

		mend := func() {
			if err := errors.Join(os.Remove(dir), os.Mkdir(dir, 0o700)); err != nil {
				t.Fatal(err)
			}
		}
		mend()
		s.Observe(numbered(2))
		pass(time.Second)
		s.heard(t, 3, "") // before the next try
		pass(sinkRetry)   // the file is open again
		s.Observe(numbered(3))
		pass(time.Second)
		isFile(t, path, lines(3))
		s.heard(t, 3, "")
		pass(sinkRecovery)
		s.Observe(numbered(4))
		pass(time.Second)
		again := `level=INFO msg="records are written again" path=` + path + " lost=3\n"
		s.heard(t, 3, again)

		// A second failure has its own count.
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		s.Observe(numbered(5))
		pass(time.Second)
		log := again + lostLog("open "+path+": no such file or directory")
		s.heard(t, 4, log)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		s.Observe(numbered(6))
		if err := stop(); err != nil { // the last write does not wait for sinkRetry
			t.Error(err)
		}
		isFile(t, path, lines(6))
		s.heard(t, 4, log+`level=INFO msg="records are written again" path=`+path+" lost=1\n")
	})
}

// Run returns no error if the file cannot be opened but no record was lost.
func TestSinkFailsWithoutRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHeardSink()
		if err := s.Use(Options{Path: t.TempDir()}); err == nil {
			t.Error("want an error for a folder")
		}
		stop := running(t, s.Sink)
		pass(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A change of path ends the failure of the old path.
func TestSinkLeavesATroubledPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "r.jsonl")
		s := newHeardSink()
		s.use(t, Options{Path: "/dev/full"})
		stop := running(t, s.Sink)
		s.Observe(numbered(1))
		pass(time.Second)
		s.Observe(numbered(2))
		s.use(t, Options{Path: path})
		s.Observe(numbered(3))
		if err := stop(); err != nil {
			t.Error(err)
		}
		isFile(t, path, lines(3))
		s.heard(t, 2, lostLog("write /dev/full: no space left on device")+
			"level=INFO msg=\"records were lost\" path=/dev/full lost=2\n")
	})
}

// Another program moves, removes, truncates or replaces the file.
func TestSinkFollowsThePath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "r.jsonl")
		s := newHeardSink()
		s.use(t, Options{Path: path})
		stop := running(t, s.Sink)
		observe := func(n int) {
			s.Observe(numbered(n))
			pass(time.Second)
		}
		observe(1)
		if err := os.Rename(path, path+"-moved"); err != nil {
			t.Fatal(err)
		}
		observe(2)
		isFile(t, path+"-moved", lines(1))
		isFile(t, path, lines(2))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		observe(3)
		isFile(t, path, lines(3))
		if err := errors.Join(os.WriteFile(path+"-new", []byte("theirs\n"), 0o600), os.Rename(path+"-new", path)); err != nil {
			t.Fatal(err)
		}
		observe(4)
		isFile(t, path, "theirs\n"+lines(4))
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		observe(5)
		isFile(t, path, lines(5))
		s.use(t, Options{Path: path, MaxBytes: int64(len(lines(5, 6))), Keep: 1})
		observe(6)
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		observe(7)
		observe(8)
		isFile(t, path, lines(7, 8)) // not rotated, because the file has room again
		if exists(oldRecords(path, 1)) {
			t.Error("rotated, want its length looked at")
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		pass(time.Second) // the removed file is closed before the next record
		isFile(t, path, "")
		if err := stop(); err != nil {
			t.Error(err)
		}
		s.heard(t, 0, "")
	})
}
