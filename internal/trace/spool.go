package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow is the largest window that the zstd tool decompresses by default. It covers files compressed with
// --ultra -22 or --long.
const maxZstdWindow = 128 << 20

// open sets data to a regular file that is not compressed: the file at path, or a spool of the content of path or
// stdin.
func (f *File) open(ctx context.Context, path string, o Options) error {
	if path == "-" {
		if o.Stdin == nil {
			return errors.New("-: want a standard input to read, got none")
		}
		return f.spoolFrom(ctx, o.Stdin, o)
	}
	if err := CheckKind(path, !o.Regular); err != nil { // first, because opening a pipe may block
		return err
	}
	file, err := openPath(ctx, path)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		return errors.Join(err, file.Close())
	case info.Mode().IsRegular():
		head := make([]byte, 4)
		n, err := file.ReadAt(head, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(err, file.Close())
		}
		if compression(head[:n]) == "" {
			return f.attach(file)
		}
	}
	return errors.Join(f.spoolFrom(ctx, file, o), file.Close())
}

// CheckKind returns an error if path cannot be read to its end: it is a directory or a device, or it is a pipe and pipe
// is false. It returns nil if os.Stat fails, because opening the path fails too.
func CheckKind(path string, pipe bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil //nolint:nilerr // opening it gives the same error
	}
	kind := ""
	switch mode := info.Mode(); {
	case mode.IsRegular():
	case mode.IsDir():
		kind = "a directory"
	case mode&os.ModeNamedPipe != 0:
		if !pipe {
			kind = "a pipe"
		}
	case mode&os.ModeDevice != 0:
		kind = "a device"
	default:
		kind = "something else"
	}
	if kind == "" {
		return nil
	}
	return fmt.Errorf("%s: want a file, got %s", path, kind)
}

// openPath opens a file. Opening a named pipe blocks until it has a writer. If ctx ends first, openPath opens the pipe
// for writing itself to end the wait.
func openPath(ctx context.Context, path string) (*os.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return os.Open(path)
	}
	opened := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		if w, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			<-opened
			_ = w.Close() // nothing was written
		}
	})
	defer stop()
	defer close(opened)
	return os.Open(path)
}

func (f *File) attach(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.data, f.size, f.modified = file, info.Size(), info.ModTime()
	return nil
}

// compression returns "gzip", "zstd" or "", by the first bytes.
func compression(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return "gzip"
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return "zstd"
	}
	return ""
}

// spoolFrom writes the decompressed content of in to a temporary file.
func (f *File) spoolFrom(ctx context.Context, in io.Reader, o Options) error {
	// If the reader supports deadlines, the end of ctx ends a read of a silent pipe.
	if timed, ok := in.(interface{ SetReadDeadline(time.Time) error }); ok {
		stop := context.AfterFunc(ctx, func() { _ = timed.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	spool, err := os.CreateTemp(o.TempDir, "replayd-trace-*")
	if err != nil {
		return fmt.Errorf("%s: spool: %w", f.name, err)
	}
	// A spool without a name cannot outlive the process. If the system cannot remove the name of an open file, Close
	// removes it.
	if os.Remove(spool.Name()) != nil {
		f.spool = spool.Name()
	}
	f.data = spool
	if err := f.fill(ctx, spool, in, o.MaxSpoolBytes); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.attach(spool)
}

// fill writes the decompressed content of in, at most limit bytes. Its errors give the position reached.
func (f *File) fill(ctx context.Context, spool io.Writer, in io.Reader, limit int64) error {
	raw := &counted{in: in}
	plain, kind, err := decompress(raw)
	var written, unended int64 // decompressed bytes: all, and those since the last line end
	lines := 1
	for buf := make([]byte, 256<<10); err == nil; {
		if err = ctx.Err(); err != nil {
			break
		}
		var n int
		n, err = plain.Read(buf)
		if written += int64(n); written > limit {
			return fmt.Errorf("%s: want at most %d decompressed bytes, got more", f.name, limit)
		}
		lines += bytes.Count(buf[:n], []byte("\n"))
		if end := bytes.LastIndexByte(buf[:n], '\n'); end >= 0 {
			unended = int64(n - 1 - end)
		} else if unended += int64(n); unended > maxUnendedBytes {
			return fmt.Errorf("%s:%d: %w", f.name, lines, errNoLineEnd)
		}
		if _, werr := spool.Write(buf[:n]); werr != nil {
			return fmt.Errorf("%s: spool: %w", f.name, werr)
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case ctx.Err() != nil: // also if ctx ended the read
		return fmt.Errorf("%s: %w", f.name, ctx.Err())
	}
	return fmt.Errorf("%s:%d: want a whole %s stream, got %w at byte %d (%d bytes decompressed)",
		f.name, lines, kind, err, raw.bytes, written)
}

// Decompress returns a reader of the decompressed content of in: gzip, zstd or plain, by the first bytes. The reader
// holds no goroutine and no file.
func Decompress(in io.Reader) (io.Reader, error) {
	plain, kind, err := decompress(in)
	if err != nil {
		return nil, fmt.Errorf("want a whole %s stream, got %w", kind, err)
	}
	return plain, nil
}

// decompress is Decompress, and also returns the kind: "gzip", "zstd" or "plain".
func decompress(in io.Reader) (plain io.Reader, kind string, err error) {
	buffered := bufio.NewReaderSize(in, 64<<10)
	head, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "plain", err
	}
	switch kind = compression(head); kind {
	case "gzip":
		plain, err = gzip.NewReader(buffered)
		if errors.Is(err, io.EOF) { // the stream ends inside its header
			err = io.ErrUnexpectedEOF
		}
	case "zstd":
		plain, err = zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxZstdWindow))
	default:
		plain, kind, err = buffered, "plain", nil
	}
	return plain, kind, err
}

// counted counts the bytes read through it.
type counted struct {
	in    io.Reader
	bytes int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	c.bytes += int64(n)
	return n, err
}
