package trace

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func (w *Writer) mooncake(r *Record, timed bool) error {
	if timed {
		w.units("timestamp", r.Offset, time.Millisecond)
	}
	if r.Delay != 0 {
		w.units("delay", r.Delay, time.Millisecond)
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
	w.line = append(w.line, '}')
	return nil
}

// vllm writes a row for vllm bench serve --dataset-name timed_trace. That tool makes prompts as long as their ids
// reach, so a row with too few ids gets new ones.
func (w *Writer) vllm(r *Record) error {
	w.without(r, "parts", "session_id", "delay", "gap", "extra", "agent_id", "after")
	blocks := w.allBlocks(r, "they have none or too few, and vllm's prompts are as long as their ids reach")
	w.units("timestamp", r.Offset, time.Second)
	w.number("input_length", r.InputTokens)
	w.number("output_length", r.OutputTokens)
	w.ids(blocks)
	w.line = append(w.line, '}')
	return nil
}

// allBlocks returns an id for each of the row's blocks.
func (w *Writer) allBlocks(r *Record, why string) []uint64 {
	blocks := r.Blocks
	if missing := blocksOf(r.InputTokens, w.options.BlockTokens) - len(blocks); missing > 0 {
		w.lose("made up hash_ids for", why)
		blocks = append([]uint64{}, blocks...)
		for range missing {
			blocks = append(blocks, firstFresh+w.fresh)
			w.fresh++
		}
	}
	return blocks
}

// firstFresh is the first id made up for vllm. It is far above ids that count from 0; an id that is a hash collides
// only by chance.
const firstFresh = 1 << 60

func (w *Writer) azure(r *Record) error {
	w.without(r, "parts", "hash_ids", "session_id", "delay", "gap", "extra", "agent_id", "after")
	fraction := ".0000000" // 100 ns, as in the data set of 2023
	if r.Offset%100 != 0 {
		fraction = ".000000000"
	}
	w.line = time.Unix(0, int64(r.Offset)).UTC().AppendFormat(w.line, azureTimes[0]+fraction)
	w.cell(r.InputTokens)
	w.cell(r.OutputTokens)
	return nil
}

// burstSessions is the header of BurstGPT_3.csv.
const burstSessions = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"

// burst writes a row of BurstGPT. The model is GPT-4, because vllm bench serve --dataset-name burstgpt reads only rows
// with that model. Elapsed time is left empty.
func (w *Writer) burst(r *Record) error {
	w.without(r, "parts", "hash_ids", "delay", "gap", "extra", "agent_id", "after")
	w.line = appendUnits(w.line, r.Offset, time.Second)
	kind := "API log"
	if w.options.Sessions {
		session := r.Session
		if strings.ContainsAny(session, "\r\n") {
			return fmt.Errorf("session_id: want no end of line for a CSV file, got %q", session)
		}
		if strings.ContainsAny(session, ",\" \t") {
			session = `"` + strings.ReplaceAll(session, `"`, `""`) + `"`
		}
		w.line = append(append(append(w.line, ','), session...), ',')
	} else {
		w.without(r, "session_id")
	}
	if r.Session != "" {
		kind = "Conversation log"
	}
	w.line = append(w.line, ",GPT-4"...)
	w.cell(r.InputTokens)
	w.cell(r.OutputTokens)
	w.cell(r.InputTokens + r.OutputTokens)
	w.line = append(append(w.line, ','), kind...)
	return nil
}

func (w *Writer) cell(n int) { w.line = strconv.AppendInt(append(w.line, ','), int64(n), 10) }

func (w *Writer) number(key string, n int) {
	w.key(key)
	w.line = strconv.AppendInt(w.line, int64(n), 10)
}

func (w *Writer) units(key string, d, unit time.Duration) {
	w.key(key)
	w.line = appendUnits(w.line, d, unit)
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
