package trace

import (
	"encoding/json"
	"strconv"
	"time"
)

func (w *Writer) mooncake(r *Record, timed bool) error {
	if timed {
		w.millis("timestamp", r.Offset)
	}
	if r.Delay != 0 {
		w.millis("delay", r.Delay)
	}
	if r.InputTokens > 0 {
		w.number("input_length", r.InputTokens)
	}
	if r.OutputTokens > 0 {
		w.number("output_length", r.OutputTokens)
	}
	if len(r.Blocks) > 0 {
		w.ids(r.Blocks)
	}
	for _, f := range []struct{ key, value string }{{"session_id", r.Session}, {"text_input", r.Text}} {
		if err := w.string(f.key, f.value); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		key   string
		value []byte
	}{{"messages", r.Messages}, {"tools", r.Tools}, {"payload", r.Payload}, {"extra", r.Extra}} {
		if err := w.value(f.key, f.value); err != nil {
			return err
		}
	}
	if r.Headers != nil { // of a folder of bodies, until they are sent
		all, err := json.Marshal(r.Headers)
		if err != nil {
			return err
		}
		if err := w.value("headers", all); err != nil {
			return err
		}
	}
	w.line = append(w.line, '}')
	return nil
}

func (w *Writer) number(key string, n int) {
	w.key(key)
	w.line = strconv.AppendInt(w.line, int64(n), 10)
}

func (w *Writer) millis(key string, d time.Duration) {
	w.key(key)
	w.line = appendUnits(w.line, d, time.Millisecond)
}

func (w *Writer) ids(ids []uint64) {
	w.key("hash_ids")
	w.line = append(w.line, '[')
	for i, id := range ids {
		if i > 0 {
			w.line = append(w.line, ',')
		}
		w.line = strconv.AppendUint(w.line, id, 10)
	}
	w.line = append(w.line, ']')
}
