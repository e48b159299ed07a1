package openai

import (
	"net"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/test/outside"
	"replayd/test/wiretest"
)

// untilStamped plays requests until an answer has kernel timestamps. The kernel enables timestamps shortly after
// the socket option is set, and may first have to finish disabling them for a socket that was just closed.
func untilStamped(t *testing.T, req *measure.Request, play func()) {
	t.Helper()
	for begin := time.Now(); !req.Timeline.Kernel; {
		if time.Since(begin) > outside.Patience {
			wiretest.NoStamps(t)
		}
		play()
	}
}

const measuring = 50 * time.Microsecond // see wire's TestClock

// On loopback, Linux timestamps every segment. All chunk times are kernel timestamps, and none is later than its
// read.
func TestKernelStamps(t *testing.T) {
	const chunks = 20
	log := make(chan []time.Time, 1) // the times just before each write, a lower bound for the kernel timestamps
	address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
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
	l := newClient(t, Target{Options: Options{URL: address, Timeouts: patient}}).Lane()
	defer l.Close()
	var req measure.Request
	var written []time.Time
	untilStamped(t, &req, func() {
		do(t, l, &req)
		if req.Outcome != measure.OK || len(req.Timeline.Chunks) != chunks {
			t.Fatalf("want ok and %d chunks, got %s, %d: %s", chunks, req.Outcome, len(req.Timeline.Chunks), req.Error)
		}
		written = <-log
	})
	tl := req.Timeline
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

// Reads, timestamps, framing, events and chunks do not allocate, so the allocations of a request do not depend on
// its length.
func TestNoAllocationsPerChunk(t *testing.T) {
	const more = 400
	lengths := make(chan int, 1)
	address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
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
	l := newClient(t, Target{Options: Options{URL: address, Timeouts: patient}}).Lane()
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
	perRequest(more)                                 // grows the buffers that are reused
	for _, hooks = range []Hooks{{}, {Keep: true}} { // texts without escapes go into a buffer that is reused
		short, long := perRequest(1), perRequest(more)
		// AllocsPerRun averages over 20 runs. The race detector and the runtime add a few allocations now and then.
		if long > short+5 {
			t.Errorf("%v allocations for 1 chunk, %v for %d, texts kept: %v", short, long, more, hooks.Keep)
		}
		t.Logf("%v allocations a request, texts kept: %v", short, hooks.Keep)
	}
	close(lengths)
}

// A non-streamed answer has a kernel timestamp, too.
func TestWholeKernelStamp(t *testing.T) {
	address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
		for {
			if _, _, err := request(conn); err != nil {
				return
			}
			send(conn, answered(wholeHello))
		}
	})
	l := newClient(t, Target{Options: Options{URL: address}}).Lane()
	defer l.Close()
	var req measure.Request
	untilStamped(t, &req, func() { doWhole(t, l, &req, Hooks{}) })
	if tl := req.Timeline; !tl.Kernel || len(tl.ReadDelays) != 1 || tl.ReadDelays[0] < 0 || tl.Head.Before(tl.Write) || tl.Head.After(tl.End) {
		t.Errorf("want a stamp of the kernel's, one read delay and a head between write and end, got %+v", tl)
	}
}
