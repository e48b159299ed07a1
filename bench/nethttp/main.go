//go:build linux

// Command nethttp is a load generator as one writes it in Go without much thought: net/http, a goroutine per stream,
// lines, and a time after each line. The benchmarks compare replayd with it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"replayd/bench/lab"
)

func main() {
	plan, err := lab.Flags("nethttp", os.Args[1:])
	if err == nil {
		err = run(context.Background(), plan, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nethttp:", err)
		os.Exit(1)
	}
}

// run plays the plan and reports its cost.
func run(ctx context.Context, plan lab.Plan, out io.Writer) error {
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * plan.Streams, DisableCompression: true}
	defer transport.CloseIdleConnections()
	if plan.CA != "" {
		pem, err := os.ReadFile(plan.CA)
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s: want certificates, got none", plan.CA)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	client, body := &http.Client{Transport: transport}, plan.Body()
	seen, errs := make([]lab.Seen, plan.Requests), make([]error, plan.Requests)
	account, err := lab.OpenAccount()
	if err != nil {
		return err
	}
	var streams sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	start := time.Now()
	for i := range plan.Requests {
		timer.Reset(time.Until(start.Add(time.Duration(i) * plan.Spacing)))
		<-timer.C
		streams.Go(func() { errs[i] = ask(ctx, client, plan, body, fmt.Sprintf("nethttp/0/%d", i), &seen[i]) })
	}
	streams.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	spent, err := account.Close(plan.Requests, plan.Requests*plan.Tokens)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(out).Encode(spent), lab.WriteLines(plan.Out, seen))
}

// ask sends a request and records the time of each chunk of its answer.
func ask(ctx context.Context, client *http.Client, plan lab.Plan, body, id string, seen *lab.Seen) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, plan.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", id)
	*seen = lab.Seen{ID: id, Start: time.Now().UnixNano(), Chunks: make([]int64, 0, plan.Tokens)}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: want 200, got %s", id, resp.Status)
	}
	lines, data := bufio.NewReader(resp.Body), 0
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		if bytes.HasPrefix(line, []byte("data:")) {
			if data++; data <= plan.Tokens {
				seen.Chunks = append(seen.Chunks, time.Now().UnixNano())
			}
		}
	}
	if data != plan.Tokens+lab.Tail {
		return fmt.Errorf("%s: want %d data lines, got %d", id, plan.Tokens+lab.Tail, data)
	}
	return nil
}
