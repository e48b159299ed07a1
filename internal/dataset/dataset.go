// Package dataset reads texts to send: published prompts and conversations, and a small bundled set. They become trace
// rows without times: Records. For rows that have only a length, Texts makes prompts of an exact number of tokens from
// these texts.
package dataset

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"replayd/internal/fault"
	"replayd/internal/file"
	"replayd/internal/token"
	"replayd/internal/trace"
)

// A Format is the format of a dataset's file.
type Format string

// Formats.
const (
	ShareGPT   Format = "sharegpt"    // a JSON list of conversations, as in anon8231489123/ShareGPT_Vicuna_unfiltered
	SingleTurn Format = "single_turn" // AIPerf's: one JSON object with a prompt per line
	MultiTurn  Format = "multi_turn"  // AIPerf's: one JSON object with a conversation per line
	RandomPool Format = "random_pool" // AIPerf's: a prompt per line, drawn with replacement; from a folder, one of each file
	Bundled    Format = "bundled"     // the set in this package; it has no file
)

// Limits of a dataset.
const (
	MaxEntryBytes = trace.MaxLineBytes // a line, or a conversation of ShareGPT
	MaxBytes      = 1 << 30            // all rows together, with the pools or conversations that they come from
	maxFiles      = 1024               // in a folder
	rowBytes      = 512                // more than a row or a turn takes beside its texts
	maxRead       = 16 << 30           // bytes of a file, decompressed
	// Each row of a conversation has all its turns before it, so rows grow with the square of the turns. Those of one file are at most so
	// many times as large as the file, or freeHistories: as of conversations of 128 turns of one length.
	maxHistories  = 64
	freeHistories = 64 << 20
	defaultDraws  = 100 // AIPerf's default
)

// Options of Open. The zero value is good for every format.
type Options struct {
	Tokenizer *token.Tokenizer // counts texts; nil: nothing is counted
	Seed      uint64           // of RandomPool's draws
	Draws     int              // number of rows of RandomPool; 0: 100
	Most      int              // other formats: stop after the entry with this many rows; 0: read all
	Regular   bool             // refuse a pipe, because the file will be opened again
	Turns     bool             // ShareGPT: take whole conversations, not only the first prompt of each
}

// A Set is a dataset that was read. It does not change and may be used concurrently.
type Set struct {
	// Warnings lists what was left out or is not used, one line each.
	Warnings []string
	// Unanswered means that conversations lack answers of the assistant. Their later turns then have empty answers, in
	// place of which the server's own answers can be sent.
	Unanswered bool

	records   []trace.Record
	texts     []string // the users' prompts, trimmed and in order; none is empty
	hash      string
	tokenizer *token.Tokenizer
}

// Records returns the rows in the file's order; the turns of a conversation follow one another. Offset is 0.
// OutputTokens is the length in the file, else the length of the answer in the file if there is a tokenizer to count
// it. The slice is shared and must not be changed.
func (s *Set) Records() []trace.Record { return s.records }

// SHA256 returns the hash of the files' content, in hexadecimal.
func (s *Set) SHA256() string { return s.hash }

//go:embed bundled.jsonl
var bundled string

// Open reads a whole dataset. Its error gives the place as file:line: field; in a JSON list it gives the number of the
// entry. The configuration has checked that the format is one, and that there is a path unless it is Bundled or
// ShareGPT.
func Open(ctx context.Context, format Format, path string, o Options) (*Set, error) {
	b := newBuilder(ctx, o)
	err := b.open(format, path)
	if err == nil {
		err = b.converse()
	}
	if err == nil {
		err = b.faults.Err("")
	}
	if err == nil && len(b.set.records) == 0 {
		err = fmt.Errorf("%s: want at least one prompt, got none%s", path, b.skips())
	}
	if err != nil {
		return nil, err
	}
	b.set.hash = hex.EncodeToString(b.hash.Sum(nil))
	if skipped := b.skips(); skipped != "" {
		b.set.Warnings = append(b.set.Warnings, path+skipped)
	}
	if len(b.unused) > 0 {
		b.set.Warnings = append(b.set.Warnings, fmt.Sprintf("%s: %s", path, b.unused))
	}
	return b.set, nil
}

type builder struct {
	ctx     context.Context //nolint:containedctx // it lives as long as Open
	options Options
	set     *Set
	hash    hash.Hash
	faults  fault.Tally
	bytes   int
	read    int // bytes of the files
	history int // bytes of rows with the turns before them
	pending int // turns of conversations that are not rows yet

	sessions      map[string]int // index or number of the conversation, by session name
	conversations []conversation
	short, long   int             // ShareGPT entries that were left out: without prompt and answer; of a length out of range
	times         int             // lines with a timestamp
	asked         map[string]bool // fields that were read
	unused        trace.Unused
}

func newBuilder(ctx context.Context, o Options) *builder {
	return &builder{
		ctx: ctx, options: o, set: &Set{tokenizer: o.Tokenizer}, hash: sha256.New(), sessions: map[string]int{},
		asked: map[string]bool{}, unused: trace.Unused{},
	}
}

func (b *builder) open(format Format, path string) error {
	switch format {
	case Bundled:
		return b.lines(io.TeeReader(strings.NewReader(bundled), b.hash), "bundled.jsonl", b.either)
	case ShareGPT:
		if path == "" {
			return fmt.Errorf("dataset %s: want the path of its file, got none (%s)", format, shareGPTSource)
		}
		err := b.file(path, b.shareGPT)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w (%s)", err, shareGPTSource)
		}
		return err
	case SingleTurn:
		return b.file(path, func(in io.Reader, name string) error { return b.lines(in, name, b.single) })
	case MultiTurn:
		return b.file(path, func(in io.Reader, name string) error { return b.lines(in, name, b.multi) })
	}
	return b.randomPool(path)
}

// file passes the decompressed content of a file to read.
func (b *builder) file(path string, read func(in io.Reader, name string) error) error {
	f, err := file.OpenPipe(b.ctx, path, !b.options.Regular)
	if err != nil {
		return err
	}
	defer f.Close()
	stop := file.Until(b.ctx, f)
	defer stop()
	in, err := trace.Decompress(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return read(io.TeeReader(in, b), path)
}

// Write takes what was read of a file, for its hash and its size. It implements io.Writer.
func (b *builder) Write(p []byte) (int, error) {
	if b.read += len(p); b.read > maxRead {
		return 0, fmt.Errorf("want at most %d bytes, decompressed, got more", maxRead)
	}
	return b.hash.Write(p)
}

// files returns the files of a folder, by name, or the one file.
func files(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(path, e.Name())); err == nil && info.Mode().IsRegular() {
			all = append(all, filepath.Join(path, e.Name()))
		}
	}
	if len(all) == 0 || len(all) > maxFiles {
		return nil, fmt.Errorf("%s: want 1 to %d files, got %d", path, maxFiles, len(all))
	}
	return all, nil
}

func (b *builder) add(r trace.Record, name string) error {
	r.Number = len(b.set.records)
	b.set.records = append(b.set.records, r)
	return b.reserve(rowBytes+len(r.Text)+len(r.Messages)+len(r.Extra), name)
}

// reserve counts bytes of prompts: those of rows, and those of turns that become rows later.
func (b *builder) reserve(bytes int, name string) error {
	if b.bytes += bytes; b.bytes > MaxBytes {
		return fmt.Errorf("%s: want at most %d bytes of prompts, with %d for each row, got more", name, MaxBytes, rowBytes)
	}
	return nil
}

// remember counts bytes of a row with the turns before it.
func (b *builder) remember(bytes int, at string) error {
	if b.history += bytes; b.history > max(freeHistories, maxHistories*b.read) {
		return fmt.Errorf("%s: want conversations whose rows are at most %d times as large as the file, or %d bytes, got more: they have too many turns", at, maxHistories, freeHistories)
	}
	return nil
}

func (b *builder) full() bool {
	return b.options.Most > 0 && len(b.set.records)+b.pending >= b.options.Most
}

// texts adds texts for Texts to cut from.
func (b *builder) texts(list ...string) {
	for _, text := range list {
		if text = strings.TrimSpace(text); text != "" {
			b.set.texts = append(b.set.texts, text)
		}
	}
}

// count returns the length of a text in tokens. It returns 0 if the text is empty or there is no tokenizer. A text that cannot be
// counted is a fault.
func (b *builder) count(at, field, text string) int {
	if b.options.Tokenizer == nil || text == "" {
		return 0
	}
	n, err := b.options.Tokenizer.Count([]byte(text))
	if err != nil {
		b.faults.Add(fault.Fault{Place: at, Key: field, Want: err.Error()})
	}
	return n
}

func (b *builder) want(at, field, want, got string) {
	f := fault.New(field, want, got)
	f.Place = at
	b.faults.Add(f)
}

func (b *builder) skips() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{b.short, "conversations without a prompt and an answer are left out: %d"},
		{b.long, "conversations out of the lengths that vLLM and AIPerf take are left out: %d"},
		{b.times, "times are not used, since only a trace has them: of %d lines"},
	} {
		if p.n > 0 {
			parts = append(parts, ": "+fmt.Sprintf(p.what, p.n))
		}
	}
	return strings.Join(parts, "")
}
