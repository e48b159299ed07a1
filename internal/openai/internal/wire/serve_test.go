package wire

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"testing"
)

// listen serves every connection to a loopback listener, one at a time, until the end of the test, and gives its address.
func listen(t testing.TB, serve func(conn net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
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

// listenTLS is listen for TLS; the configuration is a client's that trusts the server.
func listenTLS(t testing.TB, serve func(*tls.Conn)) (address string, trusting *tls.Config) {
	t.Helper()
	server := httptest.NewTLSServer(nil) // only its certificate is wanted
	server.Close()
	trusting = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"} //nolint:gosec // the default of the least version
	trusting.RootCAs.AddCert(server.Certificate())
	address = listen(t, func(raw net.Conn) {
		serve(tls.Server(raw, &tls.Config{Certificates: server.TLS.Certificates})) //nolint:gosec // likewise
	})
	return address, trusting
}

// dial opens a connection, which is closed before those that were asked to be closed earlier; secure is nil for none.
func dial(t testing.TB, address string, secure *tls.Config) *Conn {
	t.Helper()
	raw, err := net.Dial("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	c := NewConn(raw, NewClock())
	t.Cleanup(c.Cut)
	if secure != nil {
		if err := c.StartTLS(t.Context(), secure); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func send(conn net.Conn, text string) { _, _ = io.WriteString(conn, text) }
