package openai

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
)

// A recording is the answer of a real server, as test/engines/answers.py wrote it.
type recording struct {
	Request string // as it was sent
	End     string // kept, closed, reset, silent or left
	EndUS   int64  `json:"end_us"`
	Reads   []struct {
		AtUS  int64 `json:"at_us"`
		Bytes string
	}
}

// A meaning is what must be measured of a recording. testdata/answers/README.md says how it was written.
type meaning struct {
	Outcome   measure.Outcome
	Status    int
	Finish    string
	Error     string  // part of the error's text
	Events    int     // without [DONE]
	Chunks    []int64 `json:"chunks_us"`        // of content
	Reasoning int     `json:"reasoning_chunks"` // before the first of the answer
	Usage     measure.Usage
	Why       string // for readers
}

// The answers of real servers are measured as they were meant, to the microsecond.
func TestRecordings(t *testing.T) {
	servers, err := filepath.Glob("testdata/answers/*/meaning.json")
	if err != nil || len(servers) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, path := range servers {
		var meanings map[string]meaning
		readJSON(t, path, &meanings)
		folder := filepath.Dir(path)
		cases, _ := filepath.Glob(folder + "/*.json")
		if len(cases) != len(meanings)+1 {
			t.Errorf("%s: want a meaning for each of %d recordings, got %d", path, len(cases)-1, len(meanings))
		}
		for name, want := range meanings {
			full := filepath.Base(folder) + "/" + name
			t.Run(full, func(t *testing.T) {
				var r recording
				readJSON(t, filepath.Join(folder, name+".json"), &r)
				got := r.play(t)
				if strings.Contains(got.Error, want.Error) && (want.Error != "" || got.Error == "") {
					got.Error = want.Error
				}
				got.Why = want.Why
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// play sends the recorded bytes at their instants, and returns what is measured.
func (r *recording) play(t *testing.T) (got meaning) {
	t.Helper()
	_, asked, _ := strings.Cut(r.Request, "\r\n\r\n")
	var body struct {
		Stream        bool
		StreamOptions struct {
			PerChunk bool `json:"continuous_usage_stats"`
		} `json:"stream_options"`
	}
	if err := json.Unmarshal([]byte(asked), &body); err != nil {
		t.Fatalf("the recorded request: %v", err)
	}
	target := Target{Options: Options{Timeouts: limits, Stream: body.Stream, PerChunk: body.StreamOptions.PerChunk}}
	if strings.Contains(r.Request, "/v1/completions") {
		target.API = Completions
	}
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, target)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		over(t, c, func(_ int, conn net.Conn) { r.serve(conn, leave) })
		l := c.Lane()
		defer l.Close()
		m, err := c.AppendRequest(nil, Body{Prompt: []byte("about"), MaxTokens: 3, RequestID: "w/0/1", Stream: body.Stream})
		if err != nil {
			t.Fatal(err)
		}
		var req measure.Request
		req.Timeline.Whole = !body.Stream
		l.Do(ctx, m, &req, Hooks{})
		got = meaning{
			Outcome: req.Outcome, Status: req.Status, Finish: string(req.FinishReason), Error: string(req.Error),
			Events: req.Events, Reasoning: req.Timeline.ReasoningChunks, Usage: req.Usage,
		}
		for _, at := range req.Timeline.Chunks {
			if at%time.Microsecond != 0 {
				t.Errorf("a chunk at %v, between two microseconds", at)
			}
			got.Chunks = append(got.Chunks, at.Microseconds())
		}
	})
	return got
}

// serve answers one request; leave ends it as the client did.
func (r *recording) serve(conn net.Conn, leave func()) {
	defer func() { _ = conn.Close() }()
	if _, _, err := request(conn); err != nil {
		return
	}
	begun := time.Now()
	until := func(us int64) { pass(time.Until(begun.Add(time.Duration(us) * time.Microsecond))) }
	for _, read := range r.Reads {
		until(read.AtUS)
		send(conn, read.Bytes)
	}
	until(r.EndUS)
	switch r.End {
	case "left":
		leave()
	case "kept", "silent":
		_, _ = conn.Read(make([]byte, 1)) // until the client goes
	}
}
