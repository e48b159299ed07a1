package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"replayd/test/machine"
)

const threeRows = `{"timestamp":0,"input_length":1}` + "\n" + `{"timestamp":5,"input_length":2}` + "\n" + `{"timestamp":9,"input_length":3}` + "\n"

func gzipped(t testing.TB, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zstded(t testing.TB, content string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(w.EncodeAll([]byte(content), nil))
}

func TestSpooled(t *testing.T) {
	sum := sha256.Sum256([]byte(threeRows))
	for name, content := range map[string]string{
		"plain": threeRows, "gzip": gzipped(t, threeRows), "zstd": zstded(t, threeRows),
		"two gzip members": gzipped(t, threeRows[:40]) + gzipped(t, threeRows[40:]),
		"two zstd frames":  zstded(t, threeRows[:40]) + zstded(t, threeRows[40:]),
	} {
		for _, stdin := range []bool{false, true} {
			path, dir := write(t, "t", content), t.TempDir()
			t.Setenv("TMPDIR", dir)
			o := Options{}
			if stdin {
				path, o.Stdin = "-", iotest.HalfReader(strings.NewReader(content))
			}
			f, err := Open(t.Context(), path, o)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if rows := read(t, f, 1); len(rows) != 2 || rows[0].Line != 2 {
				t.Errorf("%s: got %v, want rows 2 and 3", name, rows)
			}
			if f.Stats.SHA256 != hex.EncodeToString(sum[:]) || f.Stats.Path != path || f.Stats.Bytes != int64(len(threeRows)) {
				t.Errorf("%s: got %+v, want path, size and hash of the decompressed rows", name, f.Stats)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("%s: the spool is still there: %v %v", name, left, err)
			}
		}
	}
}

// On a system that keeps the name of an open file, Close removes the spool.
func TestCloseRemovesNamedSpool(t *testing.T) {
	f := open(t, threeRows, Options{})
	f.spool = write(t, "spool", "")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("spool"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the spool is still there: %v", err)
	}
}

func TestSpoolFaults(t *testing.T) {
	broken := errors.New("broken")
	zipped := gzipped(t, strings.Repeat(threeRows, 1000))
	damaged := []byte(zipped)
	damaged[len(damaged)-8] ^= 1 // the checksum
	for _, c := range []struct {
		name  string
		stdin io.Reader
		limit int64
		want  string
	}{
		{"truncated gzip", strings.NewReader(zipped[:len(zipped)-8]), 0, "stdin:3001: want a whole gzip stream, got unexpected EOF at byte "},
		{"damaged gzip", bytes.NewReader(damaged), 0, "stdin:3001: want a whole gzip stream, got gzip: invalid checksum at byte "},
		{"gzip header cut", strings.NewReader(zipped[:5]), 0, "stdin:1: want a whole gzip stream, got unexpected EOF at byte 5 (0 bytes decompressed)"},
		{"truncated zstd", strings.NewReader(zstded(t, threeRows)[:20]), 0, "stdin:1: want a whole zstd stream, got unexpected EOF at byte 20 "},
		{"broken pipe", iotest.ErrReader(broken), 0, "stdin:1: want a whole plain stream, got broken at byte 0 (0 bytes decompressed)"},
		{"broken later", io.MultiReader(strings.NewReader(threeRows), iotest.ErrReader(broken)), 0, "stdin:4: want a whole plain stream, got broken at byte 99 (99 bytes decompressed)"},
		{"too much", strings.NewReader(zipped), 98_999, "stdin: want at most 98999 decompressed bytes, got more"},
		{"empty", strings.NewReader(""), 0, "stdin: want at least one row, got none"},
	} {
		_, err := Open(t.Context(), "-", Options{Stdin: c.stdin, maxSpool: c.limit})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s…", c.name, err, c.want)
		}
	}
	f, err := Open(t.Context(), "-", Options{Stdin: strings.NewReader(zipped), maxSpool: 99_000})
	if err != nil {
		t.Fatalf("just enough: %v", err)
	}
	defer f.Close()
	t.Setenv("TMPDIR", "/does/not/exist")
	if _, err := Open(t.Context(), "-", Options{Stdin: strings.NewReader(threeRows)}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory for the spool: %v", err)
	}
}

// Input without line ends is not read to its end: a sparse file of 16 GiB, an endless stream of zeros and a compressed
// one each cost 64 MiB of reading. No more than the longest valid line stays in memory.
func TestNoLineEnd(t *testing.T) {
	sparse := write(t, "sparse.jsonl", threeRows)
	if err := os.Truncate(sparse, 16<<30); err != nil {
		machine.Lacks(t, "a sparse file of 16 GiB", err)
	}
	zeros := func() *counted { return &counted{in: zero{}} }
	reading, packed := zeros(), new(bytes.Buffer)
	z := gzip.NewWriter(packed)
	if _, err := io.CopyN(z, zero{}, 80<<20); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	const want = "row: want a line of at most 8388608 bytes, got no end of it in 67108864"
	for _, c := range []struct {
		path, at string
		stdin    io.Reader
	}{{sparse, "sparse.jsonl:4", nil}, {"-", "stdin:1", reading}, {"-", "stdin:1", packed}} {
		if _, err := Open(t.Context(), c.path, Options{Stdin: c.stdin}); err == nil || err.Error() != c.at+": "+want {
			t.Errorf("want %s: %s, got %v", c.at, want, err)
		}
	}
	if reading.bytes > maxUnendedBytes+1<<20 {
		t.Errorf("want about %d bytes read, got %d", maxUnendedBytes, reading.bytes)
	}
}

// zero is an endless stream of zeros.
type zero struct{}

func (zero) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func TestCancelled(t *testing.T) {
	path := write(t, "t.jsonl", threeRows)
	ctx, cancel := context.WithCancel(t.Context())
	// Cancelled after spooling has begun.
	_, err := Open(ctx, "-", Options{Stdin: io.MultiReader(strings.NewReader(threeRows), readerFunc(func() { cancel() }))})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("while it was spooled: %v", err)
	}
	if _, err := Open(ctx, path, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("before the file was opened: %v", err)
	}
	f := open(t, threeRows, Options{})
	if err := f.check(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("before the check: %v", err)
	}
}

// readerFunc returns endless blank lines and is called at each read.
type readerFunc func()

func (f readerFunc) Read(b []byte) (int, error) {
	f()
	b[0] = '\n'
	return 1, nil
}
