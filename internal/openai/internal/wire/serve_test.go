package wire

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"testing"

	"replayd/test/wiretest"
)

// listenTLS is wiretest.Listen for TLS. It returns a client configuration that trusts the server.
func listenTLS(t testing.TB, serve func(*tls.Conn)) (address string, trusting *tls.Config) {
	t.Helper()
	server := httptest.NewTLSServer(nil) // only its certificate is used
	server.Close()
	trusting = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
	trusting.RootCAs.AddCert(server.Certificate())
	address = wiretest.Listen(t, "tcp4", func(raw net.Conn) {
		serve(tls.Server(raw, &tls.Config{Certificates: server.TLS.Certificates}))
	})
	return address, trusting
}

// dial opens a connection, over TLS unless secure is nil. The connection is closed before earlier cleanups of the
// test run.
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
