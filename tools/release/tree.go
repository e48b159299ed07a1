package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An entry is a file of an archive, or a folder, whose path ends in a slash. Paths are relative, with slashes.
type entry struct {
	path string
	mode fs.FileMode // the bits of chmod: 0o1777 is a folder like /tmp
	id   int         // of the user and of the group
	data []byte
	from string // a file on this machine, in the place of data
}

// folders returns the entries by path, with the folders above them, each before what it contains.
func folders(entries []entry) []entry {
	have := map[string]bool{}
	for _, e := range entries {
		have[e.path] = true
	}
	all := slices.Clone(entries)
	for _, e := range entries {
		for dir := path.Dir(strings.TrimSuffix(e.path, "/")); dir != "."; dir = path.Dir(dir) {
			if !have[dir+"/"] {
				have[dir+"/"] = true
				all = append(all, entry{path: dir + "/", mode: 0o755})
			}
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.path, b.path) })
	return all
}

// writeTar writes entries in their order. All of them have the same time; what else tar would store of this machine is left out.
func writeTar(w io.Writer, entries []entry, at time.Time) error {
	t := tar.NewWriter(w)
	for _, e := range entries {
		if err := writeEntry(t, e, at); err != nil {
			return fmt.Errorf("%s: %w", e.path, err)
		}
	}
	return t.Close()
}

func writeEntry(t *tar.Writer, e entry, at time.Time) error {
	h := &tar.Header{Name: e.path, Mode: int64(e.mode), Uid: e.id, Gid: e.id, ModTime: at, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg}
	if strings.HasSuffix(e.path, "/") {
		h.Typeflag = tar.TypeDir
		return t.WriteHeader(h)
	}
	var content io.Reader = bytes.NewReader(e.data)
	h.Size = int64(len(e.data))
	if e.from != "" {
		f, err := os.Open(e.from)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		content, h.Size = f, info.Size()
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(t, content)
	return err
}

// writeTarGz writes the same, compressed. The header of gzip has neither a name nor a time.
func writeTarGz(w io.Writer, entries []entry, at time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := writeTar(z, entries, at); err != nil {
		return err
	}
	return z.Close()
}

// create writes a new file by way of a function. A file that failed is removed.
func create(file string, write func(io.Writer) error) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(file), errors.Join(err, f.Close(), os.Remove(file)))
	}
	return f.Close()
}

// repositoryFiles returns the files of the repository that match patterns, as entries under a folder. A pattern without a match is an error.
func repositoryFiles(root, folder string, patterns ...string) ([]entry, error) {
	var all []entry
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: want a file, there is none", pattern)
		}
		slices.Sort(found)
		for _, file := range found {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			all = append(all, entry{path: path.Join(folder, filepath.Base(file)), mode: 0o644, data: text})
		}
	}
	return all, nil
}

// edited returns a file of the repository with words replaced. Each must be there once, so that a file that changed is noticed.
func edited(root, file string, pairs ...string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return nil, err
	}
	s := string(text)
	for i := 0; i < len(pairs); i += 2 {
		if n := strings.Count(s, pairs[i]); n != 1 {
			return nil, fmt.Errorf("%s: want %q once, got it %d times", file, pairs[i], n)
		}
		s = strings.Replace(s, pairs[i], pairs[i+1], 1)
	}
	return []byte(s), nil
}
