//go:build prometheus

package prometheus_test

import (
	"net/http"
	"testing"
	"time"

	"replayd/test/outside"
)

// start runs a program until it is ready, and until the test ends, when it must end as it is asked to.
func start(t *testing.T, log string, client *http.Client, url, program string, args ...string) {
	t.Helper()
	p := outside.Start(t, log, program, args...)
	t.Cleanup(func() { p.Term(t, 15*time.Second) })
	p.Ready(t, client, url)
}
