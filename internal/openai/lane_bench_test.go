package openai

import (
	"net"
	"testing"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/chunk"
	"replayd/internal/openai/internal/wire"
)

// BenchmarkLaneChunk measures the time per chunk of a whole request over loopback, including system calls and the
// server's writes.
func BenchmarkLaneChunk(b *testing.B) {
	const chunks = 1000
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		head, piece, end := []byte(streamHead), []byte(chunked("data: "+usualChunk+"\n\n")), []byte(chunked(done)+bodyEnd)
		buffer := make([]byte, 4096)
		for {
			if _, err := conn.Read(buffer); err != nil {
				return
			}
			_, _ = conn.Write(head)
			for range chunks {
				_, _ = conn.Write(piece)
			}
			_, _ = conn.Write(end)
		}
	}()
	c, err := New(Target{Options: Options{URL: l.Addr().String(), API: Chat, Output: OutputExact, Timeouts: limits}, Name: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	m, err := c.AppendRequest(nil, Body{Prompt: []byte("about"), Stream: true})
	if err != nil {
		b.Fatal(err)
	}
	lane := c.Lane()
	var req measure.Request
	merged, requests := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		lane.Do(b.Context(), m, &req, Hooks{})
		if req.Outcome != measure.OK || len(req.Timeline.Chunks) != chunks {
			b.Fatalf("%s: %s", req.Outcome, req.Error)
		}
		merged += req.Timeline.MergedReads
		requests++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(requests*chunks), "ns/chunk")
	b.ReportMetric(float64(merged)/float64(requests), "merged_reads/req")
	lane.Close()
	_ = l.Close()
	<-served
}

// BenchmarkScanChunk measures the time to split one chunk into an event and to decode it.
func BenchmarkScanChunk(b *testing.B) {
	line := []byte("data: " + usualChunk + "\n\n")
	var c chunk.Chunk
	var s wire.Scanner
	var a wire.Arrival
	b.ReportAllocs()
	for b.Loop() {
		e, _, ok, err := s.Next(line, a)
		if !ok || err != nil || !c.Read(e.Data, nil) || !c.Content {
			b.Fatal("want content")
		}
	}
}
