// Package machine says in tests that a requirement of theirs is missing on this machine.
package machine

import (
	"os"
	"testing"
)

// Lacks skips the test, because this machine has no such thing. In CI it fails the test, so that nothing goes untested unnoticed.
func Lacks(t testing.TB, what string, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("want %s: %v", what, err)
	}
	t.Skipf("no %s here: %v", what, err)
}
