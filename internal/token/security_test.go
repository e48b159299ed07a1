package token

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The size of a tokenizer file is limited. The test uses a sparse file, which takes no disk space.
func TestOpenIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "want at most 64 MiB, got more") {
		t.Errorf("want the bound, got %v", err)
	}
}
