//go:build between

package between_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"replayd/test/outside"
)

// A result is what the independent client saw of a request.
type result struct {
	id, outcome string
	first, last int64 // Unix ns, arrival of the first and the last token
	tokens      int
	finish      string
}

// A client plays rows as an application would: net/http, one goroutine for each row, and a transport of its own.
type client struct {
	results []result
	playing sync.WaitGroup
}

// play begins to send the rows, whose instants are times from now.
func (c *client) play(t *testing.T, url string, due []time.Duration) {
	t.Helper()
	// A connection is idle for as long as in replayd. One that is kept for longer meets uvicorn's limit of 5 s.
	transport := &http.Transport{MaxIdleConnsPerHost: len(due), IdleConnTimeout: 4 * time.Second}
	c.results = make([]result, len(due))
	epoch := time.Now()
	for i := range due {
		c.playing.Go(func() {
			timer := time.NewTimer(time.Until(epoch.Add(due[i])))
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-t.Context().Done():
				return
			}
			r := &c.results[i]
			r.id = fmt.Sprintf("client/0/%d", i)
			if err := r.send(t, transport, url); err != nil {
				r.outcome = err.Error()
			}
		})
	}
	t.Cleanup(transport.CloseIdleConnections)
}

// send sends the request and reads its answer.
func (r *result) send(t *testing.T, transport *http.Transport, url string) error {
	const body = `{"model": "m", "stream": true, "messages": [{"role": "user", "content": "where is the river"}]}`
	url += "/v1/chat/completions"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", r.id)
	resp, err := (&http.Client{Transport: transport, Timeout: outside.Patience}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, err := io.Copy(io.Discard, resp.Body)
		r.outcome = fmt.Sprintf("http_%dxx", resp.StatusCode/100)
		return err
	}
	ended := false
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		now := time.Now().UnixNano()
		ended = ended || lines.Text() == "data: [DONE]"
		e, ok := parse(lines.Text())
		if !ok || len(e.Choices) == 0 {
			continue
		}
		if e.Choices[0].Delta.Content != "" {
			if r.first == 0 {
				r.first = now
			}
			r.last = now
		}
		r.tokens, r.finish = max(r.tokens, e.Usage.Output), r.finish+e.Choices[0].Finish
	}
	switch {
	case lines.Err() != nil:
		return lines.Err()
	case !ended:
		r.outcome = "truncated"
	default:
		r.outcome = "ok"
	}
	return nil
}

// outcomes waits for the end of all requests and counts them.
func (c *client) outcomes() map[string]int {
	c.playing.Wait()
	all := map[string]int{}
	for _, r := range c.results {
		all[r.outcome]++
	}
	return all
}
