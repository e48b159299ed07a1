package comparison

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"replayd/internal/canary"
	"replayd/internal/file"
)

// stateVersion is the version of the state file. A file of another version is not read. A file of any version begins with
// stateHead, by which it is told from other files, also where it is truncated.
const stateVersion = 2

// maxState is the size from which on a state file is not read.
const maxState = 64 << 20

// A stateFile is the content of the file that keeps evidence over a restart of replayd.
type stateFile struct {
	Version     int               `json:"version"`
	Comparisons []json.RawMessage `json:"comparisons"`
}

// A savedComparison is the evidence of a comparison.
type savedComparison struct {
	Name     string          `json:"name"`
	Identity string          `json:"identity"` // digest of everything that the evidence depends on
	Epoch    time.Time       `json:"epoch"`
	Epochs   int64           `json:"epochs"`
	Version  string          `json:"version"` // of the candidate; "": not known
	Models   [2]string       `json:"models"`  // of baseline and candidate
	Evidence canary.Snapshot `json:"evidence"`
	Pods     [2][]string     `json:"pods,omitzero"` // addresses, as Models

	text json.RawMessage // as it was read
}

var (
	stateHead    = regexp.MustCompile(`^\s*\{\s*"version"\s*:\s*-?[0-9]+\s*,\s*"comparisons"\s*:`)
	stateHeadCut = regexp.MustCompile(`^\{"version":-?[0-9]+(,[^:]*)?$`)
)

// isState reports whether a replayd wrote a file, whole or in part. An empty one says nothing, and may be replaced.
func isState(text []byte) bool {
	if len(text) == 0 || stateHead.Match(text) {
		return true
	}
	if m := stateHeadCut.FindSubmatch(text); m != nil {
		const next = `,"comparisons"`
		return len(m[1]) <= len(next) && next[:len(m[1])] == string(m[1])
	}
	var reordered struct{ Version, Comparisons *json.RawMessage }
	return json.Unmarshal(text, &reordered) == nil && reordered.Version != nil && reordered.Comparisons != nil
}

// readText reads a state file; nil: there is none. The error says why it must not be used, nor replaced.
func readText(path string) ([]byte, error) {
	f, err := file.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxState+1))
	if err == nil && !isState(text) {
		err = fmt.Errorf("%s: want a state file of replayd, or none, got another file, which is not replaced", path)
	}
	return text, err
}

// readState reads a state file, if there is one. broken says why it cannot be read; err, why it must not be used.
func readState(path string) (all []savedComparison, broken, err error) {
	text, err := readText(path)
	switch {
	case err != nil || len(text) == 0:
		return nil, nil, err
	case len(text) > maxState:
		return nil, fmt.Errorf("want at most %d bytes, got more", maxState), nil
	}
	all, broken = parseState(text)
	return all, broken, nil
}

// CheckFile looks at the state file at a path without its lock: see readState.
func CheckFile(path string) (broken, err error) {
	_, broken, err = readState(file.Real(path))
	return broken, err
}

func parseState(text []byte) (all []savedComparison, err error) {
	var head struct{ Version int }
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	end := max(0, len(text)-len(seal(nil)))
	switch {
	case head.Version != stateVersion:
		return nil, fmt.Errorf("version: want %d, got %d", stateVersion, head.Version)
	case string(text[end:]) != seal(text[:end]):
		return nil, errors.New("sha256: want that of the file, got another one: it was damaged or edited")
	}
	var state stateFile
	if err := json.Unmarshal(text, &state); err != nil {
		return nil, err
	}
	for i, text := range state.Comparisons {
		one := savedComparison{text: text}
		if err := json.Unmarshal(text, &one); err != nil {
			return nil, fmt.Errorf("comparisons[%d]: %w", i, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// seal returns the end of a state file: the checksum of all bytes before it.
func seal(text []byte) string { return fmt.Sprintf(",\"sha256\":\"%x\"}\n", sha256.Sum256(text)) }

// writeState replaces the file as a whole, so that a crash leaves the one before.
func writeState(path string, state stateFile) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	text = text[:len(text)-1] // without the last brace
	return file.ReplacePrivate(path, func(f *os.File) error {
		_, err := f.Write(append(text, seal(text)...))
		return err
	})
}

const (
	unreadableSuffix = ".unreadable"
	maxUnreadable    = 10 // files that are kept beside a state file
)

// unreadable returns the name of the next file that is kept beside a state file.
func unreadable(path string) (string, error) {
	name := path + unreadableSuffix
	for n := range maxUnreadable {
		if n > 0 {
			name = path + unreadableSuffix + "." + strconv.Itoa(n)
		}
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
	}
	return "", fmt.Errorf("%s: want fewer than %d files beside it that could not be read, got %d: remove some (%s…)",
		path, maxUnreadable, maxUnreadable,
		filepath.Base(path)+unreadableSuffix)
}

// setAside renames a state file that cannot be read, and returns its new name.
func setAside(path string) (string, error) {
	name, err := unreadable(path)
	if err != nil {
		return "", err
	}
	return name, os.Rename(path, name)
}

// writeAside writes a comparison that cannot be used beside its state file, and returns the name.
func writeAside(path string, one savedComparison) (string, error) {
	name, err := unreadable(path)
	if err != nil {
		return "", err
	}
	alone := stateFile{Version: stateVersion, Comparisons: []json.RawMessage{bytes.Clone(one.text)}}
	return name, writeState(name, alone)
}
