//go:build bench && linux

package limits_test

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

// TestRequests shows the most requests/s with answers of one token, in a closed loop over a number of connections.
func TestRequests(t *testing.T) {
	s, steal := rig.ReadSize(t), rig.WatchSteal(t)
	var ours, ourCPU, floor, floorCPU []float64
	const lanes = 64
	l := load{streams: lanes, tokens: 1}
	for range s.Rounds {
		rate, cpu := l.closed(t, s.Slice)
		ours, ourCPU = append(ours, rate), append(ourCPU, cpu)

		dir := t.TempDir()
		stamp := l.server(t, rig.Options{NoLog: true})
		spent := l.loop(t, dir, stamp.URL, int(10_000*s.Slice.Seconds()), 0, "")
		stop(stamp.Process)
		floor = append(floor, float64(spent.Requests)/spent.Wall)
		floorCPU = append(floorCPU, 1e6*spent.CPU/float64(spent.Requests))
	}
	table := &lab.Table{
		Title: fmt.Sprintf("The most requests/s with answers of 1 token over %d connections, each sent when the answer before it has ended; the server takes the rest of the machine. "+
			"Medians of %d rounds of %v.", lanes, s.Rounds, s.Slice),
		Head: []string{"client", "requests/s", "CPU µs a request"},
	}
	table.Add("replayd", lab.Number(lab.Median(ours...)), lab.Number(lab.Median(ourCPU...)))
	table.Add("the floor", lab.Number(lab.Median(floor...)), lab.Number(lab.Median(floorCPU...)))
	table.Add("ratio", lab.Number(lab.Median(ours...)/lab.Median(floor...)), lab.Number(lab.Median(ourCPU...)/lab.Median(floorCPU...)))
	table.Note("replayd's are of 20 tokens of text each, made while it runs, and it observes every series; the floor sends the same bytes again and again.")
	rig.Results(t, "requests", steal, table)
}

// closed plays the load with replayd as fast as possible. It
// returns the requests/s and the CPU time of a request in µs.
func (l load) closed(t *testing.T, slice time.Duration) (perSecond, cpu float64) {
	t.Helper()
	dir := t.TempDir()
	stamp := l.server(t, rig.Options{NoLog: true})
	rows := load{streams: 1000, tokens: 1, itl: time.Millisecond}
	trace := rows.trace(t, dir, 0, 100*time.Millisecond)
	p, url := serve(t, dir, stamp.URL, fmt.Sprintf("trace: {path: %q}, arrival: concurrency, lanes: %d", trace, l.streams))
	defer stop(p, stamp.Process)
	wait(t, first(t, url).Add(500*time.Millisecond))
	from := look(t, p, url)
	wait(t, from.at.Add(slice))
	to := look(t, p, url)
	to.allOK(t)
	requests := to.page.Sum("replayd_requests_total") - from.page.Sum("replayd_requests_total")
	return requests / to.at.Sub(from.at).Seconds(), float64((to.cpu - from.cpu).Microseconds()) / requests
}

// TestStart shows the time from the start of the process to the arrival of the first request at the server.
func TestStart(t *testing.T) {
	s, steal := rig.ReadSize(t), rig.WatchSteal(t)
	dir := t.TempDir()
	whole, one := filepath.Join(dir, "whole.jsonl"), outside.Write(t, dir, "one.jsonl", `{"timestamp": 0, "input_length": 20, "output_length": 1}`+"\n")
	outside.Conversation(t, whole, 0)
	rows, err := lab.ReadLines[struct{}](whole)
	if err != nil {
		t.Fatal(err)
	}
	l := load{streams: 1, tokens: 1}
	run := func(trace string) []string { return []string{"run", trace, "--lanes", "64", "--url"} }
	clients := []struct {
		name, program string
		args          []string
	}{
		{fmt.Sprintf("replayd run, %d rows", len(rows)), binary, run(whole)},
		{"replayd run, 1 row", binary, run(one)},
		{"the floor", rig.Program("floor"), []string{"--streams", "1", "--requests", "1", "--tokens", "1", "--url"}},
	}
	took := make([][]float64, len(clients))
	for range 3 * s.Rounds {
		for i, c := range clients {
			took[i] = append(took[i], l.began(t, c.program, c.args).Seconds()*1e3)
		}
	}
	table := &lab.Table{
		Title: fmt.Sprintf("From the start of the process until its first request has arrived at the server, ms; %d starts each. Models are asked for and the template is measured before it.", 3*s.Rounds),
		Head:  []string{"client", "median", "best", "worst"},
	}
	for i, c := range clients {
		of := lab.Sample(took[i])
		table.Add(c.name, lab.Number(of.Quantile(0.5)), lab.Number(of.Quantile(0)), lab.Number(of.Max()))
	}
	table.Note("Goal: the trace of 12,031 rows ready in 50 ms: the first row's figures less the second's are %s ms.", lab.Number(lab.Median(took[0]...)-lab.Median(took[1]...)))
	rig.Results(t, "start", steal, table)
}

// began returns the time from the start of a client, whose last
// argument is the URL, to the arrival of its first request.
func (l load) began(t *testing.T, program string, args []string) time.Duration {
	t.Helper()
	dir := t.TempDir()
	stamp := l.server(t, rig.Options{})
	p := outside.Start(t, filepath.Join(dir, "client.out"), program, append(args, stamp.URL)...)
	timer := time.NewTimer(time.Second) // by then a request has been sent
	defer timer.Stop()
	select {
	case <-p.Done:
	case <-timer.C:
		stop(p)
	}
	first := int64(math.MaxInt64)
	for _, s := range stamp.Stamps(t) {
		first = min(first, s.Arrival)
	}
	if first == math.MaxInt64 {
		t.Fatalf("want a request within a second of %q's start, got none", filepath.Base(program))
	}
	return time.Duration(first - p.Began.UnixNano())
}
