package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sniffBytes is how much of a file is read to tell its format.
const sniffBytes = 1 << 20

// lowers reports whether files of the format are lowered.
func (f Format) lowers() bool {
	return f == Weka || f == AgenticMooncake || f == MooncakeDelta || f == RequestTrace
}

// openRows opens the trace. If its format is lowered, it returns the lowering, and from then on the rows are of Sessions.
func (f *File) openRows(ctx context.Context, path string, o *Options) (*lowering, error) {
	if info, err := os.Stat(path); path != "-" && err == nil && info.IsDir() {
		return f.openFolder(ctx, path, o)
	}
	if err := f.open(ctx, path, *o); err != nil {
		return nil, err
	}
	format := o.Format
	if format == Auto {
		var err error
		if format, err = f.sniffData(); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if !format.lowers() {
		return nil, nil
	}
	l, err := newLowering(format, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	read := l.reader()
	err = read(ctx, f.name, io.NewSectionReader(f.data, 0, f.size))
	return l, errors.Join(f.replace(ctx, l, o, err))
}

// replace makes the lowered rows the content of the file.
func (f *File) replace(ctx context.Context, l *lowering, o *Options, failed error) error {
	var rows *os.File
	if failed == nil {
		rows, failed = l.finish(ctx, f.name)
	} else {
		failed = errors.Join(failed, l.waiting.file.Close())
	}
	if f.data != nil {
		failed = errors.Join(failed, f.Close())
	}
	if failed != nil {
		if rows != nil {
			failed = errors.Join(failed, rows.Close())
		}
		return failed
	}
	if o.Format = Sessions; l.format == MooncakeDelta { // its rows have blocks of another size
		o.BlockTokens = 0
	}
	return f.attach(rows)
}

// openFolder opens the files of a folder, by name, as one trace.
func (f *File) openFolder(ctx context.Context, path string, o *Options) (*lowering, error) {
	if o.Format != Auto && !o.Format.lowers() {
		return nil, fmt.Errorf("%s: want a file, got a directory", path)
	}
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.IsDir() || !isSessionFile(e.Name()) })
	format := o.Format
	if format == Auto && len(entries) > 0 {
		if format, err = sniffFile(filepath.Join(path, entries[0].Name())); err != nil {
			return nil, err
		}
	}
	if len(entries) == 0 || !format.lowers() {
		return nil, fmt.Errorf("%s: want a file, got a directory", path)
	}
	l, err := newLowering(format, o)
	if err != nil {
		return nil, err
	}
	read := l.reader()
	for _, e := range entries {
		if err = readFile(ctx, filepath.Join(path, e.Name()), read); err != nil {
			break
		}
	}
	return l, f.replace(ctx, l, o, err)
}

func isSessionFile(name string) bool {
	name = strings.ToLower(name)
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	return strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jsonl")
}

type readSource func(ctx context.Context, name string, in io.Reader) error

func readFile(ctx context.Context, path string, read readSource) error {
	if err := CheckKind(path, false); err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	plain, err := Decompress(file)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	} else {
		err = read(ctx, path, plain)
	}
	return errors.Join(err, file.Close())
}

// reader returns a function that adds the sessions of one file.
func (l *lowering) reader() readSource {
	ids := newWekaIDs(l.options.SharedPrefix)
	add := func(name string, line int, text []byte) error { return l.weka(ids, name, line, text) }
	switch l.format {
	case AgenticMooncake:
		add = newAgenticReader(l).read
	case MooncakeDelta:
		add = newDeltaReader(l).read
	case RequestTrace:
		add = newRequestTraceReader(l).read
	}
	return func(ctx context.Context, name string, in io.Reader) error {
		err := documents(l.source(in), func(line int, text []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return add(name, line, text)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
}

func (f *File) sniffData() (Format, error) {
	head := make([]byte, sniffBytes)
	n, err := f.data.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("%s: %w", f.name, err)
	}
	return sniff(f.name, head[:n])
}

// sniffFile returns the format of a file of a folder.
func sniffFile(path string) (format Format, err error) {
	err = readFile(context.Background(), path, func(_ context.Context, _ string, in io.Reader) error {
		head, err := io.ReadAll(io.LimitReader(in, sniffBytes))
		if err == nil {
			format, err = sniff(path, head)
		}
		return err
	})
	return format, err
}

// sniff returns the format of a file by its first object: one that is lowered, or Auto. A format that is recognised and not
// read is an error.
func sniff(name string, head []byte) (Format, error) {
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	first, _, _ := bytes.Cut(head, []byte("\n"))
	if string(bytes.TrimSpace(first)) == azureImages {
		return "", unread(name, "Azure's multimodal trace (a header with NumImages)")
	}
	if len(head) == 0 || head[0] != '{' {
		return Auto, nil
	}
	keys := keysOf(head)
	for _, known := range []struct {
		keys []string
		name string
	}{
		{[]string{"spans"}, "OpenTelemetry spans (spans)"},
		{[]string{"resourceSpans"}, "OpenTelemetry spans (resourceSpans)"},
		{[]string{"captureData"}, "SageMaker's data capture (captureData)"},
		{[]string{"round_index", "session_id"}, "TraceLab (round_index)"},
		{[]string{"turns", "session_id"}, "AIPerf's dag_jsonl (turns)"},
	} {
		if hasAll(keys, known.keys) {
			return "", unread(name, known.name)
		}
	}
	if keys["play_id"] || bytes.HasPrefix(first, []byte("{")) && bytes.Contains(first, []byte(`"`+agenticSchema+`"`)) && keys["schema"] {
		return AgenticMooncake, nil
	}
	if keys["event_type"] && bytes.Contains(head, []byte(`"`+requestTraceSchema+`"`)) || keys["event"] && bytes.Contains(first, []byte(`"`+requestTraceSchema+`"`)) {
		return RequestTrace, nil
	}
	if keys["requests"] || keys["hash_id_scope"] || keys["id"] && (keys["block_size"] || keys["tool_tokens"]) {
		return Weka, nil
	}
	return Auto, nil
}

// azureImages is the header of Azure's multimodal trace.
const azureImages = "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens"

func unread(file, name string) error {
	return fmt.Errorf("%s:1: format: want a format that replayd reads, got %s, which it does not", file, name)
}

func hasAll(keys map[string]bool, all []string) bool {
	for _, k := range all {
		if !keys[k] {
			return false
		}
	}
	return true
}

// keysOf returns the keys of the JSON object that text begins with, as far as text reaches.
func keysOf(text []byte) map[string]bool {
	keys := map[string]bool{}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return keys
	}
	for {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return keys
		}
		keys[name] = true
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return keys
		}
	}
}
