package outside

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// A Record has the fields of replayd's records that tests read.
type Record struct {
	ID       string `json:"id"`
	Error    string `json:"error"`
	Outcome  string `json:"outcome"`
	Planned  int64  `json:"planned_ns"`
	Write    int64  `json:"write_ns"`
	First    int64  `json:"first_ns"`
	Last     int64  `json:"last_ns"`
	End      int64  `json:"end_ns"`
	Lateness int64  `json:"lateness_ns"`
	Kernel   bool   `json:"kernel_time"`
	Input    int    `json:"input_tokens"`
	Chunks   int    `json:"chunks"`
	Merged   int    `json:"merged_reads"`
	Tokens   int    `json:"usage_output_tokens"`
	Finish   string `json:"finish_reason"`
	Retried  bool   `json:"retried"`
}

// recordFiles returns the content of each record file, the oldest first. A compressed file that a kill cut short does
// not count; its original still exists.
func recordFiles(t *testing.T, path string) (files []string, compressed int) {
	t.Helper()
	for n := 1; ; n++ {
		old := fmt.Sprint(path, ".", n)
		b, err := os.ReadFile(old)
		if errors.Is(err, fs.ErrNotExist) {
			if b, err = os.ReadFile(old + ".gz"); errors.Is(err, fs.ErrNotExist) {
				break
			}
			compressed++
			if err == nil {
				b, err = unzip(b)
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", old, err)
		}
		files = append(files, string(b))
	}
	slices.Reverse(files)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return append(files, string(b)), compressed
}

func unzip(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// Records reads all records, without ledgers. Every line must be complete. Only a kill may leave a torn last line;
// killed says that there was one since the daemon opened the file.
func Records(t *testing.T, path string, killed bool) (all []Record, torn bool) {
	t.Helper()
	files, compressed := recordFiles(t, path)
	for i, text := range files {
		whole, rest := "", text
		if end := strings.LastIndexByte(text, '\n') + 1; end > 0 {
			whole, rest = text[:end], text[end:]
		}
		if rest != "" {
			torn = true
			if !killed || i < len(files)-1 {
				t.Errorf("records, file %d of %d: want a newline at its end, got %q", i+1, len(files), rest)
			}
		}
		n := 0
		for line := range strings.Lines(whole) {
			n++
			if strings.HasPrefix(line, string(ledgerStart)) {
				continue
			}
			var r Record
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.ID == "" {
				t.Errorf("records, file %d of %d, line %d: want a whole record, got %q: %v", i+1, len(files), n, line, err)
				continue
			}
			all = append(all, r)
		}
	}
	t.Logf("%d records in %d files, %d of them compressed", len(all), len(files), compressed)
	return all, torn
}
