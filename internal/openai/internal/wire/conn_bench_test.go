package wire

import (
	"crypto/tls"
	"net"
	"testing"

	"replayd/test/wiretest"
)

// BenchmarkSilent measures the check of a kept connection before a request is sent on it.
func BenchmarkSilent(b *testing.B) {
	end := make(chan struct{})
	secure, trusting := listenTLS(b, func(conn *tls.Conn) { _ = conn.Handshake(); <-end })
	plain := wiretest.Listen(b, "tcp4", func(net.Conn) { <-end })
	defer close(end)
	for _, c := range []struct {
		name string
		conn *Conn
	}{{"plain", dial(b, plain, nil)}, {"TLS", dial(b, secure, trusting)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !c.conn.Silent() {
					b.Fatal("want a silent connection")
				}
			}
		})
	}
}
