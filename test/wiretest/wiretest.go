// Package wiretest has what the tests of openai and wire share: a loopback server and waits for a connection's socket.
package wiretest

import (
	"net"
	"os"
	"testing"
)

// Listen serves each connection to a loopback listener, one after the other, until the end of the test, and gives its address. The
// network is tcp4 or tcp6. In CI a missing loopback fails the test; elsewhere it skips it.
func Listen(t testing.TB, network string, serve func(net.Conn)) (address string) {
	t.Helper()
	address = "127.0.0.1:0"
	if network == "tcp6" {
		address = "[::1]:0"
	}
	l, err := net.Listen(network, address)
	if err != nil {
		missing(t, "no "+network+" loopback here: "+err.Error())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// NoStamps skips a test whose kernel stamps no segments on loopback. In CI it fails, so that the stamps do not go untested unnoticed.
func NoStamps(t testing.TB) {
	t.Helper()
	missing(t, "this kernel stamps nothing on loopback")
}

func missing(t testing.TB, text string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(text)
	}
	t.Skip(text)
}
