package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const checksumFile = "sha256sums.txt"

// A sum is the name of a file of the release and its SHA-256.
type sum struct {
	name, sha256 string
	size         int64
}

// sums returns the sums of the files in a folder, by name.
func sums(folder string) ([]sum, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var all []sum
	for _, e := range entries {
		f, err := os.Open(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		h := sha256.New()
		size, err := io.Copy(h, f)
		f.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, sum{e.Name(), hex.EncodeToString(h.Sum(nil)), size})
	}
	return all, nil
}

// checksums writes the file that `sha256sum --check` reads, about every other file.
func (r *release) checksums(context.Context) error {
	all, err := sums(r.out)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, s := range all {
		text.WriteString(s.sha256 + "  " + s.name + "\n")
	}
	return os.WriteFile(filepath.Join(r.out, checksumFile), []byte(text.String()), 0o644)
}
