package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The repository's own file is read, and one with a fault is refused.
func TestOwner(t *testing.T) {
	if o, err := readOwner("../.."); err != nil || o.Image == "" {
		t.Errorf("want an image, got %+v, %v", o, err)
	}
	for text, want := range map[string]string{
		"":                                  "OWNER.yaml: EOF",
		"module: a":                         "want module and image",
		"module: a\nimage: b\nrepositry: c": "repositry",
		"module: a\nimage: [b]":             "cannot unmarshal",
	} {
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, "OWNER.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if o, err := readOwner(root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want %s, got %+v, %v", text, want, o, err)
		}
	}
	if o := (owner{Maintainer: "A <a@example.com>"}); o.maintainer() != "A <a@example.com>" || (owner{}).maintainer() == "" {
		t.Error("want the maintainer, or the authors")
	}
}
