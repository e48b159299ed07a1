package openai

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"replayd/internal/measure"
)

// noStamps skips a test, but not in CI: there the stamps would go untested unnoticed.
func noStamps(t *testing.T) {
	t.Helper()
	const text = "this kernel stamps nothing on loopback"
	if os.Getenv("CI") == "true" {
		t.Fatal(text)
	}
	t.Skip(text)
}

// keeping is one socket for all tests: while it is open no other's end, here or in another process, stops the stamps.
var keeping = sync.OnceValue(func() io.Closer {
	keep := keepStamping()
	if keep == nil {
		return nil
	}
	// The kernel begins a little later, and may at first still be busy with ending for somebody who closed just before.
	const settled = 50 * time.Millisecond
	var since time.Time // of the first stamp in a row
	for begin := time.Now(); time.Since(begin) < 10*time.Second; <-time.After(time.Millisecond) {
		switch stamped := stampedOnce(); {
		case !stamped:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > settled:
			return keep // a file is closed when it is forgotten
		}
	}
	return nil
})

// stampedOnce says whether a segment over loopback comes with a stamp.
func stampedOnce() bool {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return false
	}
	defer func() { _ = l.Close() }()
	from, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		return false
	}
	defer func() { _ = from.Close() }()
	to, err := l.Accept()
	if err != nil {
		return false
	}
	defer func() { _ = to.Close() }()
	w := newWire(to, newClock())
	if _, err = from.Write([]byte("a")); err == nil {
		_, err = w.Read(make([]byte, 1))
	}
	return err == nil && w.last.kernel
}

// stamping has the kernel stamp what comes over loopback, for as long as this process lives.
func stamping(t *testing.T) {
	t.Helper()
	if keeping() == nil {
		noStamps(t)
	}
}

const measuring = 50 * time.Microsecond // see TestClock

// On loopback Linux stamps every segment: all chunk times are the kernel's, and no later than the reads.
func TestKernelStamps(t *testing.T) {
	stamping(t)
	const chunks = 20
	log := make(chan []time.Time, 1) // just before each write: no stamp can be earlier
	address := listen(t, "tcp4", func(conn net.Conn) {
		for {
			if _, _, err := request(conn); err != nil {
				return
			}
			send(conn, streamHead)
			var written []time.Time
			for range chunks {
				written = append(written, time.Now())
				send(conn, chunked(delta("a")))
			}
			log <- written
			send(conn, chunked(done)+bodyEnd)
		}
	})
	l := newClient(t, Target{URL: address, Timeouts: limits}).Lane()
	defer l.Close()
	var req measure.Request
	do(t, l, &req)
	written := <-log
	tl := req.Timeline
	if req.Outcome != measure.OK || !tl.Kernel || len(tl.Chunks) != chunks {
		t.Fatalf("want stamps of the kernel's, got %t; %s, %d chunks: %s", tl.Kernel, req.Outcome, len(tl.Chunks), req.Error)
	}
	if len(tl.ReadDelays) == 0 {
		t.Error("no read delays")
	}
	for _, d := range tl.ReadDelays {
		if d < 0 {
			t.Errorf("read %v before it arrived", -d)
		}
	}
	for i, at := range tl.Chunks {
		if early := written[i].Sub(tl.Write.Add(at)); early > measuring {
			t.Errorf("chunk %d arrived %v before it was written", i, early)
		}
		if tl.Write.Add(at).After(tl.End) {
			t.Errorf("chunk %d arrived after the end", i)
		}
	}
}

// The server closes the connection while nobody reads: the last bytes keep the time at which they came, not the FIN's,
// however soon after the FIN the read is. The clock itself must pass: the kernel's does not run in virtual time.
func TestStampIsNotTheFINs(t *testing.T) {
	stamping(t)
	for _, c := range []struct{ open, late time.Duration }{{300 * time.Millisecond, 20 * lateRead}, {silence + 100*time.Millisecond, 0}} {
		read, written, closed := make(chan struct{}), make(chan time.Time, 1), make(chan time.Time, 1)
		address := listen(t, "tcp4", func(conn net.Conn) {
			send(conn, "a chunk, ")
			<-read
			send(conn, "the last chunk")
			written <- time.Now()
			<-time.After(c.open)
			_ = conn.Close() // the FIN is what is tested
			closed <- time.Now()
		})
		conn, err := net.Dial("tcp4", strings.TrimPrefix(address, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		w := newWire(conn, newClock())
		buffer := make([]byte, 100)
		if _, err := w.Read(buffer); err != nil {
			t.Fatal(err)
		}
		close(read)
		came, fin := <-written, <-closed
		<-time.After(c.late)
		n, err := w.Read(buffer)
		if err != nil || n != len("the last chunk") {
			t.Fatalf("want the data, got %d bytes, %v", n, err)
		}
		if !w.last.kernel {
			t.Fatal("want a stamp of the kernel's")
		}
		if at := w.last.at; !at.Before(fin.Add(-c.open / 2)) {
			t.Errorf("stamped %v after the data were written, when the connection was closed after %v", at.Sub(came), fin.Sub(came))
		}
		late := time.Now().Add(time.Minute)
		if n := testing.AllocsPerRun(10, func() { w.stamps.ofData(late.UnixNano()-int64(time.Second), late) }); n != 0 {
			t.Errorf("a second look allocates %v times", n)
		}
	}
}

// Between the socket and the timeline nothing is allocated: reads, stamps, framing, events, chunks. What a request
// allocates does not depend on its length.
func TestNoAllocationsPerChunk(t *testing.T) {
	const more = 400
	lengths := make(chan int, 1)
	address := listen(t, "tcp4", func(conn net.Conn) {
		buffer := make([]byte, 4096)
		head, chunk, end := []byte(streamHead), []byte(chunked(delta("a"))), []byte(chunked(done)+bodyEnd)
		for n := range lengths {
			if _, err := conn.Read(buffer); err != nil {
				return
			}
			_, _ = conn.Write(head)
			for range n {
				_, _ = conn.Write(chunk)
			}
			_, _ = conn.Write(end)
		}
	})
	l := newClient(t, Target{URL: address, Timeouts: limits}).Lane()
	defer l.Close()
	m := message(t, l.client)
	var req measure.Request
	var hooks Hooks
	perRequest := func(chunks int) float64 {
		return testing.AllocsPerRun(20, func() {
			lengths <- chunks
			l.Do(t.Context(), m, &req, hooks)
			if req.Outcome != measure.OK || len(req.Timeline.Chunks) != chunks {
				t.Fatalf("%s with %d chunks: %s", req.Outcome, len(req.Timeline.Chunks), req.Error)
			}
		})
	}
	perRequest(more)                                 // grows what is used again
	for _, hooks = range []Hooks{{}, {Keep: true}} { // texts without escapes go into a buffer that is used again
		short, long := perRequest(1), perRequest(more)
		// Whole allocations, averaged over 20 runs; the race detector and the runtime add a few now and then.
		if long > short+5 {
			t.Errorf("%v allocations for 1 chunk, %v for %d, texts kept: %v", short, long, more, hooks.Keep)
		}
		t.Logf("%v allocations a request, texts kept: %v", short, hooks.Keep)
	}
	close(lengths)
}

// The time of an answer in one piece is the kernel's, too.
func TestWholeKernelStamp(t *testing.T) {
	stamping(t)
	address := listen(t, "tcp4", func(conn net.Conn) {
		for {
			if _, _, err := request(conn); err != nil {
				return
			}
			send(conn, answered(wholeHello))
		}
	})
	l := newClient(t, Target{URL: address}).Lane()
	defer l.Close()
	var req measure.Request
	doWhole(t, l, &req, Hooks{})
	if tl := req.Timeline; !tl.Kernel || len(tl.ReadDelays) != 1 || tl.ReadDelays[0] < 0 || tl.Head.Before(tl.Write) || tl.Head.After(tl.End) {
		t.Errorf("want a stamp of the kernel's, one read delay and a head between write and end, got %+v", tl)
	}
}

// What came before the deadline was in time, also where it is read later, by a process that was stopped; what came behind it was not.
func TestDeadlineIsOfTheArrival(t *testing.T) {
	stamping(t)
	say := make(chan string)
	said := make(chan struct{})
	address := listen(t, "tcp4", func(conn net.Conn) {
		for text := range say {
			send(conn, text)
			said <- struct{}{}
		}
		_ = conn.Close()
		close(said)
	})
	conn, err := net.Dial("tcp4", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	w := newWire(conn, newClock())
	buffer := make([]byte, 100)
	read := func() (string, error) {
		n, err := w.Read(buffer)
		if n > 0 && !w.last.kernel {
			t.Error("want a stamp of the kernel's")
		}
		return string(buffer[:n]), err
	}
	// hear has the server say a text, which stands in the kernel then.
	hear := func(text string) {
		say <- text
		<-said
		for stands := 0; stands < len(text); {
			if err := w.stamps.raw.Control(func(fd uintptr) { stands, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil {
				t.Fatal(err)
			}
			runtime.Gosched()
		}
	}
	hear("in time")
	w.until = time.Now() // and is over at once
	if got, err := read(); got != "in time" || err != nil {
		t.Errorf("want what came before the deadline, got %q, %v", got, err)
	}
	if got, err := read(); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("want %v, got %q, %v", os.ErrDeadlineExceeded, got, err)
	}
	w.until = time.Now()
	<-time.After(10 * measuring)
	hear("too late")
	if got, err := read(); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("want %v, got %q, %v", os.ErrDeadlineExceeded, got, err)
	}
	hear("the last")
	w.until = time.Now().Add(100 * time.Millisecond) // the kernel knows the time of data to some 10 ms
	<-time.After(300 * time.Millisecond)
	close(say)
	<-said
	<-time.After(20 * lateRead)
	if got, err := read(); got != "the last" || err != nil { // whose stamp is the FIN's now
		t.Errorf("want what came before the deadline, got %q, %v", got, err)
	}
	if got, err := read(); got != "" || !errors.Is(err, io.EOF) {
		t.Errorf("want %v where the connection is at its end, got %q, %v", io.EOF, got, err)
	}
}
