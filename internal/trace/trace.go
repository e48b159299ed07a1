// Package trace reads request traces in the formats of format.go, and writes some of them. Input is plain, gzip or zstd,
// from a file or a pipe.
//
// Open checks a whole file, reports every fault and computes all figures. Rows then streams the file in due order from
// any offset, one row at a time, so memory does not grow with the trace. A Writer writes rows one by one.
package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Limits of a file.
const (
	MaxLineBytes    = 8 << 20 // one line, its end included; a prompt of a million tokens is about half of it
	MaxTokens       = 1 << 24 // in a length, and in a block
	MaxSessionBytes = 256     // a session_id
	Window          = 4096    // most rows that a row may stand behind its place in due order

	defaultSpoolBytes = 16 << 30
	maxUnendedBytes   = 64 << 20 // most bytes without a line end; input with more is not text
)

// Options of Open. The zero value detects everything.
type Options struct {
	Format      Format  // "" means Auto
	BlockTokens int     // tokens of a prefix-cache block; 0: detected
	Strict      bool    // more ids than the prompt has blocks are an error, not a warning
	Columns     Columns // of a table whose header or keys Auto does not know

	// SharedPrefix gives the prompts of Weka's sessions a common beginning: see wekaIDs. Else sessions share no block.
	SharedPrefix bool

	// Wait says how long a wait after a parent takes when the trace is played, in the time of the trace. The instants of floating rows, and so
	// the order of the rows, follow from it: a row is read after its parents, and before these can make it due. nil: as recorded.
	Wait func(recorded time.Duration) time.Duration

	// What warnings take into account: rows of a session have only what is new in each turn, and the trace is played from an
	// offset, or from its first row.
	Deltas    bool
	From      time.Duration
	FromFirst bool

	Header func(name, value string) bool // says whether rows may set a header; nil: none may

	BySession bool // Sessions and Row will be used; this takes 32 bytes a row

	Gap time.Duration // Stats has the gaps between instants that are longer; 0: none

	Regular bool      // refuse a pipe, because the trace will be opened again
	Stdin   io.Reader // read for the path "-"

	maxSpool int64 // most decompressed bytes of a pipe or a compressed file to spool; 0: 16 GiB
}

func (o *Options) check() error {
	o.Format, o.maxSpool = cmp.Or(o.Format, Auto), cmp.Or(o.maxSpool, defaultSpoolBytes)
	errs := []error{o.Format.check()}
	if o.BlockTokens < 0 || o.BlockTokens > MaxTokens {
		errs = append(errs, fmt.Errorf("block tokens: want 1 to %d, or 0 to detect them, got %d", MaxTokens, o.BlockTokens))
	}
	if o.Columns.Given() {
		if o.Format != Auto && o.Format != Named {
			errs = append(errs, fmt.Errorf("columns: want format %s or %s, got %s", Auto, Named, o.Format))
		}
		o.Format = Named
	}
	return errors.Join(append(errs, o.Columns.Check().Under("columns").Err())...)
}

// A File is a trace that passed the checks of Open. Its methods may be called concurrently.
type File struct {
	Stats Stats

	name     string // used in errors
	data     *os.File
	lowered  bool   // the lines are not the source's
	spool    string // path that Close still has to remove; "" if there is none
	size     int64
	modified time.Time

	decode    decoder
	tabs      bool   // separate cells
	chats     *chats // only for Bailian's format; else nil
	base      int64  // time of the file's own clock at offset 0, nanoseconds
	index     []mark
	inherited []int64  // instants of the turns that inherit theirs from the previous turn, in file order
	first     bits     // by row, whether it is the first of its session
	last      bits     // likewise, the last
	starts    []int64  // by row, the byte at which its line starts; only where rows have After, and with Options.BySession
	graph     []parent // by row, its instant and its line; only with order or sessions
	order     []int    // of an unsorted file whose rows have After: the rows in due order; graph has their instants
	sessions  [][]int  // with Options.BySession: see Sessions
}

// A mark is a place where reading can begin. There is one every markRows rows, so that a seek skips few rows.
type mark struct {
	offset    int64 // byte at which the row's line starts
	lines     int   // lines before it
	number    int   // the row's Record.Number
	inherited int   // how many earlier rows are in File.inherited
	latest    int64 // latest instant of all earlier rows
}

const markRows = 1024

// Open spools the file if needed (a pipe, gzip, zstd) and checks it in one pass. It reads the file once more if blocks
// turn out not to hold 512 tokens, and once more if rows are not in due order. The error lists the first 20 faults,
// each as file:line: field: want X, got Y, and gives their total. The path "-" is Options.Stdin.
func Open(ctx context.Context, path string, o Options) (*File, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	f := &File{name: path}
	if path == "-" {
		f.name = "stdin"
	}
	lowered, err := f.openRows(ctx, path, &o)
	if err != nil {
		return nil, err
	}
	f.lowered = lowered != nil
	if err := f.check(ctx, o); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if f.Stats.Path = path; lowered != nil {
		lowered.describe(&f.Stats, f.name)
	}
	if o.SharedPrefix && f.Stats.Format != Weka {
		return nil, errors.Join(fmt.Errorf("%s: a shared prefix needs format %s, got %s", f.name, Weka, f.Stats.Format), f.Close())
	}
	return f, nil
}

// Close closes the file and removes the spool, if there is one. Rows that are still open fail.
func (f *File) Close() error {
	err := f.data.Close()
	if f.spool != "" {
		err = errors.Join(err, os.Remove(f.spool))
		f.spool = ""
	}
	return err
}

// ErrChanged is wrapped by the errors of Rows and Next if the file changed after Open checked it.
var ErrChanged = errors.New("the trace changed after it was checked")

// unchanged checks the open file, not the path: replacing the file by rename does no harm.
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
