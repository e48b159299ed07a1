package report

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

// request is one that was written late by that much and whose two tokens came at ttft and ttft+tpot.
func request(late, ttft, tpot time.Duration) *measure.Request {
	due := time.Unix(1000, 0)
	return &measure.Request{
		ID: "w/0/1", Outcome: measure.OK, Usage: measure.Usage{Output: 2},
		Timeline: measure.Timeline{
			Planned: due, Due: due, Ready: due, Lane: due, Write: due.Add(late), Chunks: []time.Duration{ttft, ttft + tpot},
		},
	}
}

func TestLine(t *testing.T) {
	p := &Progress{}
	expect := func(elapsed time.Duration, requests int, want string) {
		t.Helper()
		if got := p.Line(elapsed, requests); got != want {
			t.Errorf("\nwant %q\n got %q", want, got)
		}
	}
	expect(400*time.Millisecond, 20, "    0s  0 of 20 done: 0 ok, 0 failed, 0 dropped")
	expect(time.Second, 0, "    1s  0 done: 0 ok, 0 failed, 0 dropped")

	p.Drop(measure.Overload)
	expect(2*time.Second, 20, "    2s  1 of 20 done: 0 ok, 0 failed, 1 dropped")

	// Never sent: no lateness.
	p.Observe(&measure.Request{Outcome: measure.ConnectFailed, Error: "no route"})
	expect(3*time.Second, 20, "    3s  2 of 20 done: 0 ok, 1 failed, 1 dropped  last error: connect: no route")

	// One token has no TPOT.
	one := request(250*time.Microsecond, 20*time.Millisecond, 0)
	one.Usage.Output, one.Timeline.Chunks = 1, one.Timeline.Chunks[:1]
	p = &Progress{}
	p.Observe(one)
	expect(75*time.Second, 20, " 1m15s  1 of 20 done: 1 ok, 0 failed, 0 dropped  TTFT p50 20.0 ms, p99 20.0 ms  lateness p99 250 µs")

	// Of 100 values 1..100 the nearest rank's p50 is the 51st, p99 the 100th.
	p = &Progress{}
	for i := 100; i > 0; i-- {
		n := time.Duration(i)
		p.Observe(request(n*time.Microsecond, n*20*time.Millisecond, n*time.Millisecond))
	}
	expect(time.Hour, 0, "1h0m0s  100 done: 100 ok, 0 failed, 0 dropped  TTFT p50 1.02 s, p99 2.00 s  TPOT p50 51.0 ms  lateness p99 100 µs")

	// Only the last 512 count.
	for range recent {
		p.Observe(request(0, 3*time.Millisecond, time.Millisecond))
	}
	expect(time.Hour, 0, "1h0m0s  612 done: 612 ok, 0 failed, 0 dropped  TTFT p50 3.0 ms, p99 3.0 ms  TPOT p50 1.0 ms  lateness p99 0 µs")
}

// Lines come at each tick and end when all is done.
func TestShow(t *testing.T) {
	for _, c := range []struct {
		terminal bool
		want     string
	}{
		{false, "   10s  0 of 2 done: 0 ok, 0 failed, 0 dropped\n   20s  1 of 2 done: 0 ok, 0 failed, 1 dropped\n"},
		{true, "\x1b[?7l   10s  0 of 2 done: 0 ok, 0 failed, 0 dropped\x1b[K\x1b[?7h\r" +
			"\x1b[?7l   20s  1 of 2 done: 0 ok, 0 failed, 1 dropped\x1b[K\x1b[?7h\r\x1b[K"},
	} {
		t.Run(fmt.Sprint("terminal ", c.terminal), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, out, done := &Progress{}, &strings.Builder{}, make(chan struct{})
				ended := make(chan struct{})
				go func() {
					p.Show(out, c.terminal, 10*time.Second, 2, done)
					close(ended)
				}()
				after := time.NewTimer(15 * time.Second)
				<-after.C
				p.Drop(measure.Overload)
				after.Reset(14 * time.Second)
				<-after.C
				close(done)
				<-ended
				if out.String() != c.want {
					t.Errorf("\nwant %q\n got %q", c.want, out)
				}
			})
		})
	}
}

func TestFailures(t *testing.T) {
	f, out := &Failures{}, &strings.Builder{}
	f.Observe(&measure.Request{ID: "w/0/0", Outcome: measure.OK})
	if err := f.Write(out); err != nil || out.String() != "" {
		t.Errorf("want nothing of requests that ended ok, got %q, %v", out, err)
	}
	for i, o := range []measure.Outcome{measure.HTTP5xx, measure.Empty, measure.HTTP429, measure.HTTP429, measure.ConnectFailed} {
		f.Observe(&measure.Request{ID: fmt.Sprint("w/0/", i+1), Outcome: o, Error: fmt.Sprint("text ", i+1)})
	}
	if err := f.Write(out); err != nil {
		t.Fatal(err)
	}
	const want = `
the first request of each failure
http_429                  w/0/3: text 3
connect                   w/0/5: text 5
empty                     w/0/2: text 2
http_5xx                  w/0/1: text 1
`
	if out.String() != want {
		t.Errorf("want %s\n got %s", want, out)
	}
}
