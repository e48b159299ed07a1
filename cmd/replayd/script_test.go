package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"replayd/test/outside"
)

// exit CODE PROGRAM ARGS… runs a program and expects the exit code. The commands stdout and stderr then check its
// output.
func exit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		got = e.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code: want %d, got %d", want, got)
	}
}

// freeport VAR sets VAR to an address of this host on which nothing listens.
func freeport(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport VAR")
	}
	ts.Setenv(args[0], outside.Address(ts))
}

// fetch URL writes the body of a page to the script's stdout; the status must be 200.
func fetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fetch URL")
	}
	ctx, cancel := context.WithTimeout(context.Background(), outside.Patience)
	defer cancel()
	body, err := page(ctx, args[0])
	ts.Check(err)
	_, err = ts.Stdout().Write(body)
	ts.Check(err)
}

// waitfor URL [PATTERN] polls a page until its status is 200 and it matches the pattern, if given.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: waitfor URL [PATTERN]")
	}
	pattern := regexp.MustCompile("(?m)" + strings.Join(args[1:], ""))
	ctx, cancel := context.WithTimeout(context.Background(), outside.Patience)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		body, err := page(ctx, args[0])
		if err == nil && pattern.Match(body) {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			ts.Fatalf("no %v at %s within %v: %v\n%s", pattern, args[0], outside.Patience, err, body)
		}
	}
}

func page(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return body, err
}

// signal TERM|INT WORD sends a signal to the background programs that have the word among their arguments.
func signalTo(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt}
	if neg || len(args) != 2 || signals[args[0]] == nil {
		ts.Fatalf("usage: signal TERM|INT WORD")
	}
	sent := false
	for _, c := range ts.BackgroundCmds() {
		if slices.Contains(c.Args, args[1]) {
			ts.Check(c.Process.Signal(signals[args[0]]))
			sent = true
		}
	}
	if !sent {
		ts.Fatalf("no program in the background has the argument %s", args[1])
	}
}

// lines N FILE expects the file to have N lines.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines N FILE")
	}
	if got := strings.Count(ts.ReadFile(args[1]), "\n"); strconv.Itoa(got) != args[0] {
		ts.Fatalf("%s: want %s lines, got %d", args[1], args[0], got)
	}
}

// saw [-count=N] FILE PATTERN waits until a background program has written a file that matches the pattern, N times if
// a count is given.
func saw(ts *testscript.TestScript, neg bool, args []string) {
	count := 0
	if n := len(args); n == 3 {
		_, err := fmt.Sscanf(args[0], "-count=%d", &count)
		ts.Check(err)
		args = args[1:]
	}
	if neg || len(args) != 2 {
		ts.Fatalf("usage: saw [-count=N] FILE PATTERN")
	}
	pattern := regexp.MustCompile("(?m)" + args[1])
	ctx, cancel := context.WithTimeout(context.Background(), outside.Patience)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if n := len(pattern.FindAll(text, -1)); err == nil && n > 0 && (n == count || count == 0) {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			ts.Fatalf("no %v in %s within %v: %v\n%s", pattern, args[0], outside.Patience, err, text)
		}
	}
}

// make FILE KIND writes a trace that does not fit in a script.
func makeTrace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: make FILE KIND")
	}
	row := func(at int) string {
		return `{"timestamp": ` + strconv.Itoa(at) + `, "input_length": 20, "output_length": 4}` + "\n"
	}
	var b bytes.Buffer
	switch args[1] {
	case "long-line": // 10 MB on line 2
		b.WriteString(row(0) + `{"text_input": "` + strings.Repeat("x", 10_000_000) + `"}` + "\n" + row(2))
	case "unsorted": // the first row belongs after more rows than the window holds
		b.WriteString(row(9000))
		for i := range 5000 {
			b.WriteString(row(i))
		}
	case "bom-crlf":
		b.WriteString("\xef\xbb\xbf" + strings.ReplaceAll(row(0)+row(1)+row(2), "\n", "\r\n"))
	default:
		ts.Fatalf("make: no such kind: %s", args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o644))
}

// subst FILE replaces $VAR in a file.
func subst(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: subst FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(os.Expand(ts.ReadFile(args[0]), ts.Getenv)), 0o644))
}
