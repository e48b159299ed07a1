// Package lab has what the benchmarks share: the plan that every client plays, the records of clients and of the
// stamping server, the machine and its steal, CPU time and memory of processes, samples and tables.
package lab

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"
)

// A Plan is a load. Request i of Requests is sent at the start + i × Spacing.
type Plan struct {
	URL       string // such as http://127.0.0.1:8000
	Streams   int    // about this many are in flight
	Requests  int
	Spacing   time.Duration
	Tokens    int    // of an answer, at most the server's
	BodyBytes int    // of a request's prompt
	Out       string // file with a Seen per line; "": none
}

// Slack is the time that Spacing allows an answer beyond its own length.
const Slack = 50 * time.Millisecond

// Spacing returns the interval between requests that keeps about streams streams in flight.
func Spacing(streams, tokens int, ttft, itl time.Duration) time.Duration {
	return (ttft + time.Duration(tokens-1)*itl + Slack) / time.Duration(streams)
}

// Flags parses a plan from a client's command line.
func Flags(name string, args []string) (Plan, error) {
	var p Plan
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.StringVar(&p.URL, "url", "", "the server, such as http://127.0.0.1:8000")
	f.IntVar(&p.Streams, "streams", 100, "connections")
	f.IntVar(&p.Requests, "requests", 1000, "requests to send")
	f.DurationVar(&p.Spacing, "spacing", 10*time.Millisecond, "time between two of them")
	f.IntVar(&p.Tokens, "tokens", 100, "tokens of an answer")
	f.IntVar(&p.BodyBytes, "body-bytes", 100, "size of a prompt")
	f.StringVar(&p.Out, "out", "", "file for the time of each chunk; empty: none is kept")
	if err := f.Parse(args); err != nil {
		return p, err
	}
	u, err := url.Parse(p.URL)
	switch {
	case err != nil:
		return p, fmt.Errorf("--url: %w", err)
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return p, fmt.Errorf("--url: want http://HOST:PORT, got %q", p.URL)
	case f.NArg() > 0:
		return p, fmt.Errorf("want flags only, got %q", f.Args())
	case p.Streams < 1 || p.Requests < 1 || p.Tokens < 1 || p.BodyBytes < 0 || p.Spacing < 0:
		return p, errors.New("want streams, requests and tokens ≥ 1, sizes and times ≥ 0")
	}
	return p, nil
}

// Prompt returns the text of each request.
func (p Plan) Prompt() string { return strings.Repeat("word ", p.BodyBytes/5+1)[:p.BodyBytes] }

// Body returns the body of each request, for /v1/chat/completions.
func (p Plan) Body() string {
	return fmt.Sprintf(`{"model":"stamp","messages":[{"role":"user","content":%q}],"max_tokens":%d,"stream":true,"stream_options":{"include_usage":true}}`,
		p.Prompt(), p.Tokens)
}

// Tail is the number of data lines after those with content: the finish reason, the usage and [DONE].
const Tail = 3

// A Seen is a request as its client saw it. Times are ns of CLOCK_REALTIME since the Unix epoch.
type Seen struct {
	ID     string  `json:"id"`
	Start  int64   `json:"start"`  // just before its write
	Chunks []int64 `json:"chunks"` // with content
}

// A Stamped is a request as bench/stamp saw it. Times are ns of CLOCK_REALTIME since the Unix epoch.
type Stamped struct {
	ID      string  `json:"id"`
	Arrival int64   `json:"arrival"` // kernel timestamp of its last segment; Read if there is none
	Read    int64   `json:"read"`
	Chunks  []int64 `json:"chunks"` // with content, each just before its write
	End     int64   `json:"end"`    // 0: the answer was not complete
}

// A Spent is the cost that one of our clients reports at its end.
type Spent struct {
	Tokens   int     `json:"tokens"`
	Requests int     `json:"requests"`
	CPU      float64 `json:"cpu_seconds"`
	Wall     float64 `json:"wall_seconds"`
	Peak     int64   `json:"rss_peak_bytes"`
}

// ReadLines reads a file of JSON with a value per line.
func ReadLines[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []T
	d := json.NewDecoder(bufio.NewReaderSize(f, 1<<20))
	for {
		var v T
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: value %d: %w", path, len(all)+1, err)
		}
		all = append(all, v)
	}
}

// WriteLines writes a file of JSON with a value per line, or no file if path is "".
func WriteLines[T any](path string, all []T) (err error) {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	e := json.NewEncoder(w)
	for i := range all {
		if err := e.Encode(all[i]); err != nil {
			return err
		}
	}
	return w.Flush()
}
