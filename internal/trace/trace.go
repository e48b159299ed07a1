// Package trace reads and writes request traces: Mooncake's JSON lines, Azure's and BurstGPT's CSV, vLLM's timed traces,
// and reads Bailian's; plain, gzip or zstd, from a file or a pipe.
//
// Open checks a whole file in one pass, with every fault and every figure; Rows then streams it in due order from any
// place, a row at a time, so that memory does not grow with the trace. A Writer writes rows one by one.
package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Bounds on what a file may hold.
const (
	MaxLineBytes    = 8 << 20 // one line, its end included; a prompt of a million tokens is about half of it
	MaxTokens       = 1 << 24 // a length, and a block
	MaxSessionBytes = 256     // a session_id
	Window          = 4096    // a row may stand at most so many rows behind its place in due order

	defaultSpoolBytes = 16 << 30
	maxUnendedBytes   = 64 << 20 // reading gives up where no line ends for so long: it is not a text
)

// Options of Open. The zero value detects everything.
type Options struct {
	Format      Format // "" means Auto
	BlockTokens int    // tokens of a prefix-cache block; 0: detected
	Strict      bool   // more ids than the prompt has blocks are an error, not a warning

	Regular       bool      // a pipe is refused: the trace is to be opened again
	Stdin         io.Reader // what the path "-" reads
	TempDir       string    // where pipes and compressed files are spooled; "" is os.TempDir()
	MaxSpoolBytes int64     // most decompressed bytes to spool; 0: 16 GiB
}

func (o *Options) check() error {
	if o.Format == "" {
		o.Format = Auto
	}
	var errs []error
	if err := o.Format.check(); err != nil {
		errs = append(errs, err)
	}
	if o.BlockTokens < 0 || o.BlockTokens > MaxTokens {
		errs = append(errs, fmt.Errorf("block tokens: want 1 to %d, or 0 to detect them, got %d", MaxTokens, o.BlockTokens))
	}
	if o.MaxSpoolBytes < 0 {
		errs = append(errs, fmt.Errorf("spool bytes: want ≥ 1, or 0 for %d, got %d", int64(defaultSpoolBytes), o.MaxSpoolBytes))
	}
	if o.MaxSpoolBytes == 0 {
		o.MaxSpoolBytes = defaultSpoolBytes
	}
	return errors.Join(errs...)
}

// A File is a trace that was found to be good. Its methods may be called at once.
type File struct {
	Stats Stats

	name     string // in errors
	data     *os.File
	spool    string // still to be removed by Close; "" when there is none
	size     int64
	modified time.Time

	decode    decoder
	chats     *chats // of Bailian's format; nil
	base      int64  // what the file's own clock shows at offset 0, nanoseconds
	maxID     uint64 // largest of all hash_ids
	index     []mark
	inherited []int64 // instants of the rows that take theirs from the turn before, in file order
}

// A mark is a place where reading can begin: every markRows rows, so that a search reads few rows in vain.
type mark struct {
	offset    int64 // byte at which the row's line starts
	lines     int   // lines before it
	number    int   // the row's Record.Number
	inherited int   // rows before it that are in File.inherited
	latest    int64 // latest instant of the rows before it
}

const markRows = 1024

// Open spools the file if it must (a pipe, gzip, zstd), then checks it in one pass; a second one follows when blocks
// turn out not to be of 512 tokens, or rows not to be in due order. Its error holds the first 20 faults, each as
// file:line: field: want X, got Y, and says how many there are. The path "-" is Options.Stdin.
func Open(ctx context.Context, path string, o Options) (*File, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	f := &File{name: path}
	if path == "-" {
		f.name = "stdin"
	}
	if err := f.open(ctx, path, o); err != nil {
		return nil, err
	}
	if err := f.check(ctx, o); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.Stats.Path = path
	return f, nil
}

// Close removes the spool, if there is one. Rows that are still open fail.
func (f *File) Close() error {
	err := f.data.Close()
	if f.spool != "" {
		err = errors.Join(err, os.Remove(f.spool))
		f.spool = ""
	}
	return err
}

// ErrChanged is in the errors of Rows and Next when the file is no longer the one that was checked.
var ErrChanged = errors.New("the trace changed after it was checked")

// unchanged looks at the open file, not at the path: a file put in its place by rename does no harm.
func (f *File) unchanged() error {
	info, err := f.data.Stat()
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	if info.Size() != f.size {
		return fmt.Errorf("%s: %w: want %d bytes, got %d", f.name, ErrChanged, f.size, info.Size())
	}
	if !info.ModTime().Equal(f.modified) {
		return fmt.Errorf("%s: %w: it was written to at %s", f.name, ErrChanged, info.ModTime().Format(time.RFC3339))
	}
	return nil
}
