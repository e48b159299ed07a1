package scarce

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
)

func TestOf(t *testing.T) {
	dial := func(cause error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8000}, Err: os.NewSyscallError("socket", cause)}
	}
	// The documentation's network is reached from no address of a machine without IPv6.
	unreachable := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 8000}, Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)}
	if c, err := net.Dial("udp", unreachable.Addr.String()); err == nil {
		_ = c.Close()
		unreachable = nil // this machine has a route
	}
	for _, c := range []struct {
		err  error
		want Resource
	}{
		{nil, None},
		{errors.New("too many open files"), None}, // a server's words
		{dial(syscall.ECONNREFUSED), None},
		{dial(syscall.ECONNRESET), None},
		{dial(syscall.EHOSTUNREACH), None},
		{context.DeadlineExceeded, None},
		{dial(syscall.EMFILE), Descriptors},
		{dial(syscall.ENFILE), Descriptors},
		{dial(syscall.ENOMEM), Memory},
		{dial(syscall.ENOBUFS), Memory},
		{dial(syscall.EADDRNOTAVAIL), Ports},
		{syscall.EADDRNOTAVAIL, None},
		{&net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EADDRNOTAVAIL)}, None},
		{&url.Error{Op: "Get", URL: "http://a", Err: dial(syscall.EMFILE)}, Descriptors},
		{&os.PathError{Op: "open", Path: "ca.pem", Err: syscall.EMFILE}, Descriptors},
		{fmt.Errorf("TLS: %w", &net.DNSError{Err: "dial udp 10.0.0.1:53: socket: too many open files", Name: "vllm"}), Descriptors},
		{&net.DNSError{Err: "no such host", Name: "vllm"}, None},
	} {
		if got := Of(c.err); got != c.want {
			t.Errorf("%v: want %q, got %q", c.err, c.want, got)
		}
	}
	if unreachable != nil {
		if got := Of(unreachable); got != None {
			t.Errorf("%v: want none, got %q", unreachable, got)
		}
	}
}

func TestMet(t *testing.T) {
	before := Times(Descriptors)
	if !Met(syscall.EMFILE) || !Met(syscall.ENFILE) || Met(syscall.ECONNREFUSED) || Met(nil) {
		t.Error("want the lack of descriptors alone")
	}
	if got := Times(Descriptors) - before; got != 2 || Times(None) != 0 {
		t.Errorf("want 2, got %d", got)
	}
}
