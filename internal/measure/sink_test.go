package measure

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func lostCounter() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "lost_total"})
}

// running starts a sink inside a bubble and returns the func that stops it.
func running(t *testing.T, s *Sink) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return func() error { cancel(); return <-ended }
}

func TestSinkWritesWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		s := NewSink(&file, lostCounter())
		first, second := request("w/0/0", 0, OK, ms), request("w/0/1", 0, HTTP429)
		s.Observe(first) // before Run
		stop := running(t, s)
		s.Observe(second)
		<-time.After(time.Second) // of the bubble
		synctest.Wait()
		want := string(appendRecord(appendRecord(nil, first), second))
		if got := file.String(); got != want {
			t.Errorf("after a second:\n%s\nwant\n%s", got, want)
		}
		s.Observe(first)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := file.String(); got != want+string(appendRecord(nil, first)) {
			t.Errorf("the last record is missing at the end:\n%s", got)
		}
	})
}

func TestSinkWritesAtOnceWhenMuchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		s := NewSink(&file, lostCounter())
		stop := running(t, s)
		began := time.Now()
		r := request(strings.Repeat("x", sinkWake/2), 0, OK, ms)
		s.Observe(r)
		s.Observe(r)
		synctest.Wait()
		if file.Len() == 0 || time.Since(began) != 0 {
			t.Errorf("%d bytes after %v, want all of them at once", file.Len(), time.Since(began))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A disk that is full takes two records and a part of the third.
func TestSinkOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := request("w/0/0", 0, OK, ms)
		line := len(appendRecord(nil, r))
		lost := lostCounter()
		s := NewSink(&fullDisk{room: 2*line + 10}, lost)
		stop := running(t, s)
		f := func(want float64) {
			t.Helper()
			<-time.After(time.Second) // of the bubble
			synctest.Wait()
			if got := testutil.ToFloat64(lost); got != want {
				t.Errorf("%v records lost, want %v", got, want)
			}
		}
		s.Observe(r)
		f(0)
		s.Observe(r)
		s.Observe(r)
		s.Observe(r)
		f(2) // the cut one and the one after it
		s.Observe(r)
		f(3) // nothing is tried again
		err := stop()
		if !errors.Is(err, errFull) || err.Error() != "records: no space left on device" {
			t.Errorf("error %v, want that of the disk", err)
		}
	})
}

func TestSinkFailsInTheLastWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := lostCounter()
		s := NewSink(&fullDisk{}, lost)
		stop := running(t, s)
		s.Observe(request("w/0/0", 0, OK, ms))
		if err := stop(); !errors.Is(err, errFull) {
			t.Errorf("error %v, want that of the disk", err)
		}
		if got := testutil.ToFloat64(lost); got != 1 {
			t.Errorf("%v records lost, want 1", got)
		}
	})
}

func TestSinkAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		lost := lostCounter()
		s := NewSink(&file, lost)
		if err := running(t, s)(); err != nil {
			t.Error(err)
		}
		s.Observe(request("w/0/0", 0, OK, ms))
		if got := testutil.ToFloat64(lost); got != 1 || file.Len() != 0 {
			t.Errorf("%v records lost, %d bytes written, want 1 and 0", got, file.Len())
		}
	})
}

// slowDisk holds every write until it is let go.
type slowDisk struct {
	entered, release chan struct{}
	bytes.Buffer
}

func (d *slowDisk) Write(b []byte) (int, error) {
	d.entered <- struct{}{}
	<-d.release
	return d.Buffer.Write(b)
}

// While the disk does not take anything, records gather up to the bound; then they are lost and counted, and nobody waits.
func TestSinkNeverWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &slowDisk{entered: make(chan struct{}), release: make(chan struct{})}
		lost := lostCounter()
		s := NewSink(disk, lost)
		stop := running(t, s)
		s.Observe(request("w/0/0", 0, OK, ms))
		<-disk.entered // the first is on its way, and stays there

		big := request(strings.Repeat("x", 1<<20), 0, OK, ms) // a little over 1 MiB a line: three fit into 4 MiB
		for range 5 {
			s.Observe(big)
		}
		if got := testutil.ToFloat64(lost); got != 2 {
			t.Errorf("%v records lost, want 2", got)
		}
		go func() {
			for range disk.entered { // the second write
			}
		}()
		close(disk.release)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := bytes.Count(disk.Bytes(), []byte{'\n'}); got != 4 {
			t.Errorf("%d records written, want 4", got)
		}
		close(disk.entered)
	})
}

// A failure while records gather counts those too: each is either in the file or lost.
func TestSinkCountsWhatGatheredDuringTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &failingLate{entered: make(chan struct{}), release: make(chan struct{})}
		lost := lostCounter()
		s := NewSink(disk, lost)
		stop := running(t, s)
		r := request("w/0/0", 0, OK, ms)
		s.Observe(r)
		<-disk.entered
		s.Observe(r)
		close(disk.release)
		if err := stop(); !errors.Is(err, errFull) {
			t.Errorf("error %v, want that of the disk", err)
		}
		if got := testutil.ToFloat64(lost); got != 2 {
			t.Errorf("%v records lost, want 2", got)
		}
	})
}

// failingLate fails its one write when it is let go.
type failingLate struct{ entered, release chan struct{} }

func (d *failingLate) Write([]byte) (int, error) {
	d.entered <- struct{}{}
	<-d.release
	return 0, errFull
}
