package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"replayd/internal/openai/internal/wiretest"
)

// keeping is one socket for all tests: while it is open no other's end, here or in another process, stops the stamps.
var keeping = sync.OnceValue(func() io.Closer {
	keep := KeepStamps()
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
	w := newSocket(to, NewClock())
	if _, err = from.Write([]byte("a")); err == nil {
		_, err = w.Read(make([]byte, 1))
	}
	return err == nil && w.last.Kernel
}

// stamping has the kernel stamp what comes over loopback, for as long as this process lives.
func stamping(t *testing.T) {
	t.Helper()
	if keeping() == nil {
		wiretest.NoStamps(t)
	}
}

const measuring = 50 * time.Microsecond // see TestClock

// The server closes the connection while nobody reads: the last bytes keep the time at which they came, not the FIN's,
// however soon after the FIN the read is. The clock itself must pass: the kernel's does not run in virtual time.
func TestStampIsNotTheFINs(t *testing.T) {
	stamping(t)
	for _, c := range []struct{ open, late time.Duration }{{300 * time.Millisecond, 20 * lateRead}, {silence + 100*time.Millisecond, 0}} {
		read, written, closed := make(chan struct{}), make(chan time.Time, 1), make(chan time.Time, 1)
		address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
			send(conn, "a chunk, ")
			<-read
			send(conn, "the last chunk")
			written <- time.Now()
			<-time.After(c.open)
			_ = conn.Close() // the FIN is what is tested
			closed <- time.Now()
		})
		conn, err := net.Dial("tcp4", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		w := newSocket(conn, NewClock())
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
		if !w.last.Kernel {
			t.Fatal("want a stamp of the kernel's")
		}
		if at := w.last.At; !at.Before(fin.Add(-c.open / 2)) {
			t.Errorf("stamped %v after the data were written, when the connection was closed after %v", at.Sub(came), fin.Sub(came))
		}
		late := time.Now().Add(time.Minute)
		if n := testing.AllocsPerRun(10, func() { w.stamps.ofData(late.UnixNano()-int64(time.Second), late) }); n != 0 {
			t.Errorf("a second look allocates %v times", n)
		}
	}
}

// What came before the deadline was in time, also where it is read later, by a process that was stopped; what came behind it was not.
func TestDeadlineIsOfTheArrival(t *testing.T) {
	stamping(t)
	say := make(chan string)
	said := make(chan struct{})
	address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
		for text := range say {
			send(conn, text)
			said <- struct{}{}
		}
		_ = conn.Close()
		close(said)
	})
	conn, err := net.Dial("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	w := newSocket(conn, NewClock())
	buffer := make([]byte, 100)
	read := func() (string, error) {
		n, err := w.Read(buffer)
		if n > 0 && !w.last.Kernel {
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
