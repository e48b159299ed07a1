//go:build !race

package web

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"replayd/test/outside"
)

// A connection takes at most 32 KiB before its first request is complete, so before a password is asked, and 80 KiB in a TLS handshake.
// The race detector makes goroutines and their stacks larger: 105 KB were seen.
func TestMemoryOfAVisitor(t *testing.T) {
	header := "GET / HTTP/1.1\r\nHost: a\r\nX-Long: " + strings.Repeat("x", 11<<10)
	hello := string([]byte{22, 3, 1, 0x40, 0, 1, 0, 0xf0, 0}) + strings.Repeat("x", 16<<10-4) // a record of 16 KiB of a ClientHello of 60 KiB
	hello += string([]byte{22, 3, 1, 0x40, 0}) + strings.Repeat("x", 3<<10)
	for name, c := range map[string]struct {
		config, sends string
		most          int64
	}{"header": {"", header, 32 << 10}, "TLS": {certified, hello, 80 << 10}} {
		t.Run(name, func(t *testing.T) {
			o := Options{}
			if c.config != "" {
				dir := t.TempDir()
				outside.Certificate(t, dir)
				o.ConfigFile = write(t, dir, "web.yaml", c.config)
			}
			s := serve(t, o)
			const visitors = 100
			inUse := func() uint64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return m.HeapInuse + m.StackInuse
			}
			before := inUse()
			for range visitors {
				conn, err := net.Dial("tcp", s.listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := io.WriteString(conn, c.sends); err != nil {
					t.Fatal(err)
				}
			}
			outside.Until(t, func() error {
				if open := s.door.Open(); open != visitors {
					return fmt.Errorf("%d of %d visitors came", open, visitors)
				}
				return nil
			})
			var most uint64
			for range 20 {
				most = max(most, inUse())
			}
			each := int64(most-before) / visitors
			t.Logf("%d bytes a connection", each)
			if each > c.most {
				t.Errorf("want at most %d bytes for each of %d connections, got %d", c.most, visitors, each)
			}
		})
	}
}
