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

// maxZstdWindow is what the zstd tool itself decompresses without being told more: --ultra -22, --long.
const maxZstdWindow = 128 << 20

// open sets data to a plain regular file: the one at path, or a spool of what it or stdin holds.
func (f *File) open(ctx context.Context, path string, o Options) error {
	if path == "-" {
		if o.Stdin == nil {
			return errors.New("-: want a standard input to read, got none")
		}
		return f.spoolFrom(ctx, o.Stdin, o)
	}
	if err := CheckKind(path, !o.Regular); err != nil { // before it is opened, which may wait
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

// CheckKind says why a path cannot be read to its end: it is a directory or a device, or a pipe where none may be. A path that
// cannot be read is left to the open call.
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

// openPath opens a file. Opening a named pipe waits for its writer: when ctx ends first, a writer is made up.
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

// compression tells gzip and zstd by their first bytes.
func compression(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return "gzip"
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return "zstd"
	}
	return ""
}

// spoolFrom copies what in holds, decompressed, to a temporary file.
func (f *File) spoolFrom(ctx context.Context, in io.Reader, o Options) error {
	// A read of a silent pipe ends with the context, where the reader knows deadlines.
	if timed, ok := in.(interface{ SetReadDeadline(time.Time) error }); ok {
		stop := context.AfterFunc(ctx, func() { _ = timed.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	spool, err := os.CreateTemp(o.TempDir, "replayd-trace-*")
	if err != nil {
		return fmt.Errorf("%s: spool: %w", f.name, err)
	}
	// Without a name the spool cannot outlive the process. Where an open file keeps its name, Close removes it.
	if os.Remove(spool.Name()) != nil {
		f.spool = spool.Name()
	}
	f.data = spool
	if err := f.fill(ctx, spool, in, o.MaxSpoolBytes); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.attach(spool)
}

// fill writes at most limit decompressed bytes. Its errors say how far it came.
func (f *File) fill(ctx context.Context, spool io.Writer, in io.Reader, limit int64) error {
	raw := &counted{in: in}
	plain, kind, err := decompress(raw)
	var written, unended int64 // decompressed bytes; those since the last line's end
	lines := 1
	for buf := make([]byte, 256<<10); err == nil; {
		if err = ctx.Err(); err != nil {
			break
		}
		var n int
		n, err = plain.Read(buf)
		if written += int64(n); written > limit {
			return fmt.Errorf("%s: want at most %d bytes to spool, decompressed, got more", f.name, limit)
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
	case ctx.Err() != nil: // also when the read was cut short for it
		return fmt.Errorf("%s: %w", f.name, ctx.Err())
	}
	return fmt.Errorf("%s:%d: want a whole %s stream, got %w at byte %d (%d bytes decompressed)",
		f.name, lines, kind, err, raw.bytes, written)
}

// Decompress reads what is gzip, zstd or neither, by its first bytes. The reader that it returns holds no goroutine and no
// file.
func Decompress(in io.Reader) (io.Reader, error) {
	plain, kind, err := decompress(in)
	if err != nil {
		return nil, fmt.Errorf("want a whole %s stream, got %w", kind, err)
	}
	return plain, nil
}

// decompress looks at the first bytes. The reader that it returns holds no goroutine and no file.
func decompress(in io.Reader) (plain io.Reader, kind string, err error) {
	buffered := bufio.NewReaderSize(in, 64<<10)
	head, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "plain", err
	}
	switch kind = compression(head); kind {
	case "gzip":
		plain, err = gzip.NewReader(buffered)
		if errors.Is(err, io.EOF) { // a stream cut inside its own header
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

// counted counts the bytes that were read through it.
type counted struct {
	in    io.Reader
	bytes int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	c.bytes += int64(n)
	return n, err
}
