//go:build bench && linux

package limits_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
)

// TestScrape shows the cost of a scrape while many streams are in flight, compared with the server's smallest answer.
func TestScrape(t *testing.T) {
	s, steal := rig.ReadSize(t), rig.WatchSteal(t)
	l := load{streams: 300, tokens: 100, ttft: 50 * time.Millisecond, itl: 10 * time.Millisecond}
	scrapes := 10
	if s.Full {
		l.streams, scrapes = 500, 50
	}
	dir := t.TempDir()
	stamp := l.server(t, rig.Options{NoLog: true})
	const rest, every = 2 * time.Second, 100 * time.Millisecond
	trace := l.trace(t, dir, rest, l.answer()+time.Duration(scrapes+10)*every)
	p, url := serve(t, dir, stamp.URL, fmt.Sprintf("trace: {path: %q}, repeat: {mode: once}, lanes: 8192", trace))
	defer stop(p, stamp.Process)
	began := first(t, url)
	table := &lab.Table{
		Title: fmt.Sprintf("A scrape of one workload's page, gzip and text as Prometheus asks for them; %d under each load, one in %v. The floor is /-/ready of the same server at the same time.", scrapes, every),
		Head:  []string{"in flight", "ms, median", "worst", "the floor's, median", "worst", "bytes", "as sent"},
	}
	measure := func(n int) {
		var page, floor lab.Sample
		var text, sent int
		for i := range n {
			at := time.Now()
			d, size := get(t, url+"/metrics", "gzip")
			page, sent = append(page, d), size
			d, _ = get(t, url+"/-/ready", "gzip")
			floor = append(floor, d)
			if i == 0 {
				_, text = get(t, url+"/metrics", "identity")
			}
			wait(t, at.Add(every))
		}
		flying := look(t, p, url).page.Sum("replayd_requests_in_flight")
		table.Add(lab.Number(flying), lab.Number(page.Quantile(0.5)), lab.Number(page.Max()), lab.Number(floor.Quantile(0.5)), lab.Number(floor.Max()), fmt.Sprint(text), fmt.Sprint(sent))
	}
	measure(10)
	wait(t, began.Add(rest+l.answer()))
	measure(scrapes)
	look(t, p, url).allOK(t)
	rig.Results(t, "scrape", steal, table)
}

// get requests a page. It returns the time in ms and the size of the body as it was sent, in bytes.
func get(t *testing.T, url, encoding string) (ms float64, size int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	req.Header.Set("Accept-Encoding", encoding)
	began := time.Now()
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: want 200, got %s: %v", url, answer.Status, err)
	}
	return time.Since(began).Seconds() * 1e3, len(body)
}
