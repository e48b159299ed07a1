package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every license file of a module is there, under its name, and a module without one is an error.
func TestLicenseTexts(t *testing.T) {
	folders := map[string]string{}
	for module, files := range map[string][]string{"b v1": {"LICENSE", "NOTICE.txt", "main.go", "license_test.go"}, "a v2": {"COPYING"}, "c v3": {"README"}} {
		folders[module] = t.TempDir()
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(folders[module], file), []byte("text of "+file+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if text, err := licenseTexts(folders); err == nil || !strings.Contains(err.Error(), "c v3: want a file with its license") {
		t.Errorf("want the module without a license named, got %q, %v", text, err)
	}
	delete(folders, "c v3")
	text, err := licenseTexts(folders)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = strings.Cut(text, "\n")
	if want := "\n==== a v2: COPYING\n\ntext of COPYING\n\n==== b v1: LICENSE\n\ntext of LICENSE\n\n==== b v1: NOTICE.txt\n\ntext of NOTICE.txt\n"; text != want {
		t.Errorf("want\n%s\ngot\n%s", want, text)
	}
}
