//go:build bench && linux

package truth_test

import (
	"testing"
	"time"
)

// TestTLS is TestTruth over TLS. The kernel stamps the segments there too; the server stamps a chunk when it writes the
// encrypted record.
func TestTLS(t *testing.T) {
	compare(t, "truth-tls", []load{
		{streams: 100, itl: 10 * time.Millisecond, tls: true, few: true},
		{streams: 500, itl: 10 * time.Millisecond, tls: true},
	})
}
