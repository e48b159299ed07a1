//go:build faults

package faults_test

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// killClient soon gives up on a daemon that is still starting.
var killClient = http.Client{Timeout: time.Second}

// killRecords reads all record files, oldest first, and returns the ids. Only the last line of the newest file may be
// torn. After a kill a file and its compressed copy may both exist; they then have the same content.
func killRecords(t *testing.T, path string, seen *killTally) (ids []string) {
	t.Helper()
	names, err := filepath.Glob(path + ".*")
	if err != nil {
		t.Fatal(err)
	}
	age := func(name string) int {
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, path+"."), ".gz"))
		return n
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(age(b), age(a)), cmp.Compare(a, b)) // the plain file before the compressed one
	})
	plain := map[int]string{}
	for _, name := range names {
		n := age(name)
		switch {
		case name == path+".gz.tmp":
			seen.parts++
			continue
		case n == 0:
			t.Errorf("want no file %s", name)
			continue
		}
		text := killText(t, name)
		if before, ok := plain[n]; ok {
			if text != before {
				t.Errorf("%s: want what the file holds that it was made from", name)
			}
			continue
		}
		plain[n] = text
		ids = append(ids, killIDs(t, name, text)...)
	}
	text := killText(t, path)
	if i := strings.LastIndexByte(text, '\n') + 1; i < len(text) {
		seen.torn++
		text = text[:i]
	}
	ids = append(ids, killIDs(t, path, text)...)
	once := map[string]bool{}
	for _, id := range ids {
		if once[id] {
			t.Errorf("%s: two records", id)
		}
		once[id] = true
	}
	return ids
}

// killIDs returns the ids of whole lines, without ledgers.
func killIDs(t *testing.T, name, text string) (ids []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, `{"ledger":{`) && strings.HasSuffix(line, "}}\n") {
			continue
		}
		var r struct{ ID, Outcome string }
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.ID == "" || r.Outcome == "" || !strings.HasSuffix(line, "\n") {
			t.Errorf("%s: want a whole record, got %.200q: %v", filepath.Base(name), line, err)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

// killText returns the content of a file, uncompressed, or "" if it does not exist.
func killText(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if os.IsNotExist(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var from io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if from, err = gzip.NewReader(f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	text, err := io.ReadAll(from)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return string(text)
}
