package openai

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"replayd/internal/measure"
)

// FuzzAnswer checks that a request has an outcome, an error text unless the outcome is ok, and chunk times in
// ascending order, whatever the server writes before it closes the connection.
func FuzzAnswer(f *testing.F) {
	files, err := filepath.Glob("testdata/synthetic_*.sse")
	if err != nil || len(files) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(streamHead + chunked(string(b)) + bodyEnd))
	}
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 429 Slow Down\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 14\r\n\r\ndata: [DONE]\n\nHTTP"))
	f.Add([]byte(answered(wholeHello)))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + wholeHello[:40]))
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, whole := range []bool{false, true} {
			fuzzAnswer(t, answer, whole)
		}
	})
}

func fuzzAnswer(t *testing.T, answer []byte, whole bool) {
	c := newClient(t, Target{})
	over(t, c, func(_ int, conn net.Conn) {
		if _, _, err := request(conn); err == nil {
			_, _ = conn.Write(answer)
		}
		_ = conn.Close()
	})
	l := c.Lane()
	defer l.Close()
	var req measure.Request
	req.Timeline.Whole = whole
	do(t, l, &req)
	if whole && len(req.Timeline.Chunks) > 1 {
		t.Errorf("one piece in %d chunks", len(req.Timeline.Chunks))
	}
	if !slices.IsSorted(req.Timeline.Chunks) {
		t.Errorf("%+v", req)
	}
	if req.Outcome == measure.OK && (len(req.Timeline.Chunks) == 0 || req.Usage.Source == "" || req.Status/100 != 2) {
		t.Errorf("ok without content: %+v", req)
	}
	if req.Retried {
		t.Error("a new connection was tried twice")
	}
}
