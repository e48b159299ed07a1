//go:build linux

// Command stamp is the server with which load generators are measured. It answers as an OpenAI-compatible engine does,
// at planned instants, and stamps each chunk just before its write. One locked thread with an epoll loop does
// everything, so that it takes little of the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

// settings holds the command line.
type settings struct {
	listen     string
	ttft, itl  time.Duration
	tokens     int // most tokens of an answer
	chunkBytes int // of an event with content: the payload of its HTTP chunk
	log        string
	stall      stall
}

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := run(os.Args[1:], signals, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "stamp:", err)
		os.Exit(1)
	}
}

// run serves until a signal comes, then writes the log.
func run(args []string, signals <-chan os.Signal, out io.Writer) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	// Only the log grows, and none of it becomes garbage: collections would only take time from the loop.
	debug.SetGCPercent(400)
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-signals:
		case <-ctx.Done():
		}
		cancel()
	}()
	book := &book{keep: s.log != ""}
	fmt.Fprintln(out, "listening on", listener.Addr())
	err = serveLoop(ctx, listener, s, book)
	cancel()
	<-stopped
	return errors.Join(err, book.write(s.log))
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("stamp", flag.ContinueOnError)
	f.StringVar(&s.listen, "listen", "127.0.0.1:0", "address to listen on")
	f.DurationVar(&s.ttft, "ttft", 50*time.Millisecond, "time from a request's arrival to its first chunk")
	f.DurationVar(&s.itl, "itl", 10*time.Millisecond, "time between two chunks")
	f.IntVar(&s.tokens, "tokens", 100, "most chunks of an answer; a request's max_tokens can ask for less")
	f.IntVar(&s.chunkBytes, "chunk-bytes", 222, "size of an event with content")
	f.StringVar(&s.log, "log", "", "file for the stamps, written at the end; empty: none are kept")
	f.DurationVar(&s.stall.after, "stall-after", 0, "from this long after the first streamed request on")
	f.DurationVar(&s.stall.length, "stall-for", 0, "nothing is written for so long; 0: it never stalls")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	switch {
	case f.NArg() > 0:
		return s, fmt.Errorf("want flags only, got %q", f.Args())
	case s.tokens < 1 || s.tokens > maxTokens:
		return s, fmt.Errorf("--tokens: want 1 to %d, got %d", maxTokens, s.tokens)
	case s.chunkBytes < leastChunk || s.chunkBytes > maxChunk:
		return s, fmt.Errorf("--chunk-bytes: want %d to %d, got %d", leastChunk, maxChunk, s.chunkBytes)
	case s.ttft < 0 || s.itl < 0 || s.stall.after < 0 || s.stall.length < 0:
		return s, errors.New("want no negative durations")
	}
	return s, nil
}

// A stall is a time in which nothing is written.
type stall struct {
	after, length time.Duration
	first         int64 // ns of the first streamed request; 0: none yet
}

// until returns the end of the stall that contains ns, or ns itself.
func (s *stall) until(ns int64) int64 {
	from := s.first + int64(s.after)
	if to := from + int64(s.length); s.first > 0 && s.length > 0 && ns >= from && ns < to {
		return to
	}
	return ns
}
