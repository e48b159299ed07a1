package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/measure"
	"replayd/internal/replay"
)

// A promptFile is a trace of the requests that were sent: it replays to the same bodies. The file takes its lines as records
// are taken, so no request waits for a disk.
type promptFile struct {
	path  string
	sink  *measure.Sink
	timed bool // the plan has instants
	end   context.CancelFunc
	done  chan error
}

// savedRow is a line, in Mooncake's form.
type savedRow struct {
	Timestamp *float64        `json:"timestamp,omitempty"` // ms
	Session   string          `json:"session_id,omitempty"`
	Delay     float64         `json:"delay,omitempty"` // ms
	Messages  json.RawMessage `json:"messages,omitempty"`
	Tools     json.RawMessage `json:"tools,omitempty"`
	Text      string          `json:"text_input,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Output    int             `json:"output_length,omitempty"`
	Extra     json.RawMessage `json:"extra,omitempty"`
}

// openPrompts makes the file anew.
func (a *account) openPrompts() error {
	if a.order.savePrompts == "" {
		return nil
	}
	if err := writeFile(a.order.savePrompts, func(*os.File) error { return nil }); err != nil {
		return fmt.Errorf("--save-prompts: %w", err)
	}
	lost := prometheus.NewCounter(prometheus.CounterOpts{Name: "lost"}) // on no page: close says it
	p := &promptFile{
		path: a.order.savePrompts, sink: measure.NewSink(lost, a.log), done: make(chan error, 1),
		timed: a.order.config.Workloads[0].Arrival != "concurrency",
	}
	if err := p.sink.Use(measure.RecordsOptions{Path: p.path}); err != nil {
		return fmt.Errorf("--save-prompts: %w", err)
	}
	var ctx context.Context
	ctx, p.end = context.WithCancel(context.Background())
	go func() { p.done <- p.sink.Run(ctx) }() // close waits for it
	a.prompts = p
	return nil
}

// saved is what the replay hands its requests to; nil when nobody wants them.
func (a *account) saved() func(replay.Sent) {
	if a.prompts == nil {
		return nil
	}
	return a.prompts.add
}

// add writes one request.
func (p *promptFile) add(s replay.Sent) {
	var body struct {
		Messages json.RawMessage `json:"messages"`
		Tools    json.RawMessage `json:"tools"`
		Prompt   json.RawMessage `json:"prompt"`
	}
	row := savedRow{Session: s.Due.Session, Delay: milliseconds(s.Due.Delay), Output: s.Due.OutputTokens, Extra: s.Due.Extra}
	if p.timed {
		at := milliseconds(s.Offset)
		row.Timestamp = &at
	}
	err := json.Unmarshal(s.Body, &body)
	switch {
	case s.Due.Payload != nil || err != nil:
		row.Payload, row.Output, row.Extra = s.Body, 0, nil
	case body.Messages != nil:
		row.Messages, row.Tools = body.Messages, body.Tools
	case json.Unmarshal(body.Prompt, &row.Text) != nil:
		row.Payload, row.Output, row.Extra = s.Body, 0, nil
	}
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false) // messages come out byte for byte
	if e.Encode(row) == nil {
		p.sink.Append(func(b []byte) []byte { return append(b, line.Bytes()...) })
	}
}

// close writes what is still in memory.
func (p *promptFile) close() error {
	p.end()
	err := <-p.done
	if lost := p.sink.Lost(); lost > 0 {
		return fmt.Errorf("%s: %d requests are missing in it: the disk was too slow", p.path, lost)
	}
	return err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
