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

	"github.com/klauspost/compress/zstd"

	"replayd/internal/file"
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
	in, err := file.OpenPipe(ctx, path, !o.Regular) // the daemon opens the file again
	if err != nil {
		return err
	}
	info, err := in.Stat()
	switch {
	case err != nil:
		return errors.Join(err, in.Close())
	case info.Mode().IsRegular():
		head := make([]byte, 4)
		n, err := in.ReadAt(head, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(err, in.Close())
		}
		if compression(head[:n]) == "" {
			return f.attach(in)
		}
	}
	return errors.Join(f.spoolFrom(ctx, in, o), in.Close())
}

func (f *File) attach(data *os.File) error {
	info, err := data.Stat()
	if err != nil {
		return errors.Join(err, data.Close())
	}
	f.data, f.size, f.modified = data, info.Size(), info.ModTime()
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
	stop := file.Until(ctx, in)
	defer stop()
	spool, name, err := createSpool()
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	f.data, f.spool = spool, name
	if err := f.fill(ctx, spool, in, o.maxSpool); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.attach(spool)
}

// createSpool creates a temporary file without a name, which cannot outlive the process. If the system cannot remove
// the name of an open file, it returns the name, which is to be removed at the end.
func createSpool() (spool *os.File, name string, err error) {
	spool, err = os.CreateTemp("", "replayd-trace-*")
	if err != nil {
		return nil, "", fmt.Errorf("a compressed trace needs a temporary file: %w (TMPDIR names another folder)", err)
	}
	if os.Remove(spool.Name()) != nil {
		name = spool.Name()
	}
	return spool, name, nil
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

type counted struct {
	in    io.Reader
	bytes int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	c.bytes += int64(n)
	return n, err
}
