package analysis

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/internal/trace"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// openFile opens a trace with the given content in a new directory and makes that directory the current one.
func openFile(t testing.TB, content string, o trace.Options) *trace.File {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("t.jsonl", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := trace.Open(t.Context(), "t.jsonl", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// allRows returns the rows of a trace.
func allRows(t testing.TB, f *trace.File) (all []trace.Record) {
	t.Helper()
	if err := f.Each(t.Context(), func(r *trace.Record) { all = append(all, *r) }); err != nil {
		t.Fatal(err)
	}
	return all
}

// publicTrace is the path of a public trace.
func publicTrace(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("REPLAYD_TRACES")
	if dir == "" {
		t.Skip("REPLAYD_TRACES names no directory with the public traces")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// rowsAt returns rows of one token at the given milliseconds.
func rowsAt(at ...int) string {
	var b strings.Builder
	for _, milliseconds := range at {
		fmt.Fprintf(&b, "{\"timestamp\":%d,\"input_length\":1}\n", milliseconds)
	}
	return b.String()
}

// approximately equates numbers that differ by at most distance.
func approximately(distance float64) cmp.Option { return cmpopts.EquateApprox(0, distance) }

// A failingWriter returns err from every Write.
type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func totalOf(values []int64) (sum int64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

const millisecond = time.Millisecond

var updateGolden = flag.Bool("update", false, "rewrite the golden files")
