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

	"replayd/test/outside"
	"replayd/test/wiretest"
)

// keeping is one socket for all tests. While it is open, the kernel keeps timestamps enabled when another socket,
// in this process or another, is closed.
var keeping = sync.OnceValue(func() io.Closer {
	keep := KeepStamps()
	if keep == nil {
		return nil
	}
	// The kernel enables timestamps shortly after the socket option is set, and may first have to finish disabling
	// them for a socket that was just closed.
	const settled = 50 * time.Millisecond
	var since time.Time // time of the first of consecutive timestamps
	for begin := time.Now(); time.Since(begin) < outside.Patience; <-time.After(time.Millisecond) {
		switch stamped := stampedOnce(); {
		case !stamped:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > settled:
			return keep // must stay referenced: the garbage collector closes unreachable files
		}
	}
	return nil
})

// stampedOnce reports whether a segment over loopback has a kernel timestamp.
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
	w := NewConn(to, NewClock()).socket
	if _, err = from.Write([]byte("a")); err == nil {
		_, err = w.Read(make([]byte, 1))
	}
	return err == nil && w.Last.Kernel
}

// stamping makes the kernel timestamp loopback segments for the lifetime of this process.
func stamping(t *testing.T) {
	t.Helper()
	if keeping() == nil {
		wiretest.NoStamps(t)
	}
}

const measuring = 50 * time.Microsecond // see TestClock

// The server closes the connection while the client does not read. The last bytes keep their own arrival time and
// do not get that of the FIN, however soon after the FIN they are read. The test waits in real time, because the
// kernel's clock does not run in virtual time.
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
			_ = conn.Close() // the FIN is under test
			closed <- time.Now()
		})
		conn, err := net.Dial("tcp4", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		w := NewConn(conn, NewClock()).socket
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
		if !w.Last.Kernel {
			t.Fatal("want a stamp of the kernel's")
		}
		if at := w.Last.At; !at.Before(fin.Add(-c.open / 2)) {
			t.Errorf("stamped %v after the data were written, when the connection was closed after %v", at.Sub(came), fin.Sub(came))
		}
		late := time.Now().Add(time.Minute)
		if n := testing.AllocsPerRun(10, func() { w.stamps.ofData(late.Add(-time.Second), came, late) }); n != 0 {
			t.Errorf("a second look allocates %v times", n)
		}
	}
}

// Data that arrived before the deadline is returned, even if it is read later, for instance by a process that was
// stopped. Data that arrived after the deadline is not returned.
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
	w := NewConn(conn, NewClock()).socket
	buffer := make([]byte, 100)
	read := func() (string, error) {
		n, err := w.Read(buffer)
		if n > 0 && !w.Last.Kernel {
			t.Error("want a stamp of the kernel's")
		}
		return string(buffer[:n]), err
	}
	// hear makes the server send text, and waits until the text is in the kernel's receive buffer.
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
	w.Until = time.Now() // the deadline passes at once
	if got, err := read(); got != "in time" || err != nil {
		t.Errorf("want what came before the deadline, got %q, %v", got, err)
	}
	if got, err := read(); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("want %v, got %q, %v", os.ErrDeadlineExceeded, got, err)
	}
	w.Until = time.Now()
	<-time.After(10 * measuring)
	hear("too late")
	if got, err := read(); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("want %v, got %q, %v", os.ErrDeadlineExceeded, got, err)
	}
	hear("the last")
	w.Until = time.Now().Add(100 * time.Millisecond) // the kernel reports the time of the last data to about 10 ms
	<-time.After(300 * time.Millisecond)
	close(say)
	<-said
	<-time.After(20 * lateRead)
	if got, err := read(); got != "the last" || err != nil { // has the timestamp of the FIN
		t.Errorf("want what came before the deadline, got %q, %v", got, err)
	}
	if got, err := read(); got != "" || !errors.Is(err, io.EOF) {
		t.Errorf("want %v where the connection is at its end, got %q, %v", io.EOF, got, err)
	}
}
