package trace

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
)

// agentic writes a row of Dynamo's agentic Mooncake. Requests are named by their place in the file. The model is named trace,
// because the format wants one.
func (w *Writer) agentic(r *Record) error {
	w.without(r, "parts", "gap", "extra")
	play := r.Session
	if play == "" {
		play = fmt.Sprint("row ", w.rows)
	}
	agent := cmp.Or(r.Agent, play)
	w.key("request_id")
	w.line = strconv.AppendQuote(w.line, fmt.Sprint("r", w.rows))
	for _, f := range []struct{ key, value string }{{"play_id", play}, {"session_id", agent}, {"model", "trace"}} {
		if err := w.string(f.key, f.value); err != nil {
			return err
		}
	}
	w.number("input_length", r.InputTokens)
	if r.OutputTokens > 0 {
		w.number("output_length", r.OutputTokens)
	}
	w.ids(w.allBlocks(r, "they have none or too few, and agentic_mooncake has one for each block"))
	after := w.parentsOf(r)
	at := r.Offset
	if r.Floating && len(after) > 0 {
		at = 0
	}
	w.units("not_before_ms", at, time.Millisecond)
	if len(after) > 0 {
		w.dependencies(after, agent)
	}
	w.remember(r, agent)
	w.line = append(w.line, '}')
	return nil
}

// parentsOf returns the rows that a row waits for, by their places in the file. Without After it waits for the turn before.
func (w *Writer) parentsOf(r *Record) []Edge {
	if r.After != nil {
		return w.positionsOf(r)
	}
	if before, known := w.turns[r.Session]; known && r.Session != "" {
		return []Edge{{before, r.Delay}}
	}
	return nil
}

func (w *Writer) dependencies(after []Edge, agent string) {
	w.key("dependencies")
	for i, e := range after {
		open := byte(',')
		if i == 0 {
			open = '['
		}
		relation := "join"
		switch {
		case w.agents[e.Row] == agent:
			relation = "sequence"
		case !w.begun[agent]:
			relation = "spawn"
		}
		w.line = fmt.Appendf(append(w.line, open), `{"request_id":"r%d","trigger":"completion","delay_ms":`, e.Row)
		w.line = fmt.Appendf(appendUnits(w.line, e.Wait, time.Millisecond), `,"relation":"%s"}`, relation)
	}
	w.line = append(w.line, ']')
}

// remember keeps what later rows need of a row.
func (w *Writer) remember(r *Record, agent string) {
	if w.turns == nil {
		w.turns, w.begun = map[string]int{}, map[string]bool{}
	}
	w.turns[r.Session] = w.rows
	w.begun[agent] = true
	w.agents = append(w.agents, agent)
	w.put(r)
}
