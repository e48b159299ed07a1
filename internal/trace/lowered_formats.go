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

	"replayd/internal/fault"
	"replayd/internal/file"
)

// sniffBytes is how much of a file is read to tell its format.
const sniffBytes = 1 << 20

func (f Format) lowers() bool {
	return f == Weka || f == RequestTrace || f == Spans || f == TraceLab
}

// openRows opens the trace. If its format is lowered, it returns the lowering, and from then on the rows are of Sessions.
func (f *File) openRows(ctx context.Context, path string, o *Options) (*lowering, error) {
	if info, err := os.Stat(path); path != "-" && err == nil && info.IsDir() {
		return f.openFolder(ctx, path, o)
	}
	if err := f.open(ctx, path, *o); err != nil {
		return nil, err
	}
	if o.Format == Auto {
		if err := sniffer(&o.Format)(ctx, f.name, io.NewSectionReader(f.data, 0, f.size)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if !o.Format.lowers() {
		return nil, nil
	}
	l, err := newLowering(o.Format, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	err = l.reader()(ctx, f.name, io.NewSectionReader(f.data, 0, f.size))
	return l, f.replace(ctx, l, o, err)
}

// replace makes the lowered rows the content of the file.
func (f *File) replace(ctx context.Context, l *lowering, o *Options, failed error) error {
	rows, err := l.finish(ctx, f.name, failed)
	if f.data != nil {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		if rows != nil {
			err = errors.Join(err, rows.Close())
		}
		return err
	}
	o.Format = Sessions
	return f.attach(rows)
}

// openFolder opens the files of a folder, by name, as one trace.
func (f *File) openFolder(ctx context.Context, path string, o *Options) (*lowering, error) {
	format := o.Format
	entries, err := folder(ctx, path, &format)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 || !format.isOfFolders() {
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

func (f Format) isOfFolders() bool { return f.lowers() || f == Bodies }

// folder returns the files of a folder that a trace can have, by name, and sets a format that is Auto by the first of them.
func folder(ctx context.Context, path string, format *Format) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.IsDir() || !isSessionFile(e.Name()) })
	if *format == Auto && len(entries) > 0 {
		err = readFile(ctx, filepath.Join(path, entries[0].Name()), sniffer(format))
	}
	return entries, err
}

// IsFolder reports whether a folder is read as one trace.
func IsFolder(ctx context.Context, path string) bool {
	format := Auto
	_, err := folder(ctx, path, &format)
	return err == nil && format.isOfFolders()
}

func isSessionFile(name string) bool {
	name = strings.ToLower(name)
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	return strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jsonl")
}

type readSource func(ctx context.Context, name string, in io.Reader) error

func readFile(ctx context.Context, path string, read readSource) error {
	in, err := file.Open(path)
	if err != nil {
		return err
	}
	plain, err := Decompress(in)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	} else {
		err = read(ctx, path, plain)
	}
	return errors.Join(err, in.Close())
}

// reader returns a function that adds the sessions of one file.
func (l *lowering) reader() readSource {
	ids := &wekaIDs{
		shared: l.options.SharedPrefix, local: map[uint64]uint64{}, global: map[uint64]uint64{},
		prefix: map[wekaPlace]uint64{},
	}
	add := func(line int, text []byte) (fault.List, error) { return l.weka(ids, line, text) }
	switch l.format {
	case RequestTrace:
		add = newRequestTraceReader(l).read
	case Spans:
		add = newSpansReader(l).read
	case TraceLab:
		add = newTraceLabReader(l).read
	case Bodies:
		l.block, add = blockSizes[0], l.body // no row has ids
	}
	return func(ctx context.Context, name string, in io.Reader) error {
		l.faults.name, l.latest = name, -1
		content := &counted{in: in}
		err := documents(io.TeeReader(content, l.digest), func(line int, text []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			found, err := add(line, text)
			for _, f := range found {
				l.faults.add(line, f)
			}
			return err
		})
		l.bytes += content.bytes
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
}

// sniffer returns a function that sets the format by the beginning of a source.
func sniffer(format *Format) readSource {
	return func(_ context.Context, name string, in io.Reader) error {
		head, err := io.ReadAll(io.LimitReader(in, sniffBytes))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*format, err = sniff(name, head)
		return err
	}
}

// sniff returns the format of a file by its first object: one that is lowered, Bailian or Auto. A format that is
// recognized and not read is an error.
func sniff(name string, head []byte) (Format, error) {
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	first, _, _ := bytes.Cut(head, []byte("\n"))
	keys := keysOf(head)
	if kind := textsIn(head, keys); kind != "" {
		return "", fmt.Errorf("%s:1: format: want a trace, got texts: --input-file reads them, with --custom-dataset-type %s, "+
			"and so does dataset.path", name, kind)
	}
	if len(head) == 0 || head[0] != '{' {
		return Auto, nil
	}
	for _, known := range []struct {
		keys []string
		name string
	}{
		{[]string{"captureData"}, "SageMaker's data capture (captureData)"},
		{[]string{"turns", "session_id"}, "AIPerf's dag_jsonl (turns)"},
		{[]string{"play_id"}, "Dynamo's agentic Mooncake (play_id)"},
	} {
		if !slices.ContainsFunc(known.keys, func(key string) bool { return !keys[key] }) {
			return "", unread(name, known.name)
		}
	}
	if keys["schema"] && bytes.Contains(first, []byte(`"dynamo.agentic_mooncake"`)) {
		return "", unread(name, "Dynamo's agentic Mooncake (schema)")
	}
	if bytes.Contains(first, []byte(`"dynamo.agent.trace.v1"`)) { // what came before the request trace
		return "", unread(name, "Dynamo's agent trace (schema)")
	}
	if keys["event_type"] && bytes.Contains(head, []byte(`"`+requestTraceSchema+`"`)) || keys["event"] && bytes.Contains(first, []byte(`"`+requestTraceSchema+`"`)) {
		return RequestTrace, nil
	}
	if keys["requests"] || keys["hash_id_scope"] || keys["id"] && (keys["block_size"] || keys["tool_tokens"]) {
		return Weka, nil
	}
	if keys["spans"] || keys["resourceSpans"] {
		return Spans, nil
	}
	if keys["round_index"] && keys["session_id"] {
		return TraceLab, nil
	}
	if keys["chat_id"] && (keys["parent_chat_id"] || keys["turn"] || keys["input_length"]) {
		return Bailian, nil
	}
	if isBodies(keys) {
		return Bodies, nil
	}
	return Auto, nil
}

// textsIn returns AIPerf's type of a file of texts, which is no trace; "": it is none.
func textsIn(head []byte, keys map[string]bool) string {
	has := func(of ...string) bool { return slices.ContainsFunc(of, func(key string) bool { return keys[key] }) }
	switch {
	case bytes.HasPrefix(head, []byte("[")) && bytes.Contains(head, []byte(`"conversations"`)):
		return "sharegpt"
	case has("turns") && !bytes.Contains(head, []byte(`"messages"`)):
		return "multi_turn"
	case has("text", "texts", "prompt") && !isBodies(keys) && !has("input_length", "text_input", "messages", "payload"):
		return "single_turn"
	}
	return ""
}

func unread(file, name string) error {
	return fmt.Errorf("%s:1: format: want a format that replayd reads, got %s, which it does not", file, name)
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
