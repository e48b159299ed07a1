package terminal

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
)

// request returns a request that was written late after its due time. Its two tokens came at ttft and ttft+tpot.
func request(late, ttft, tpot time.Duration) *measure.Request {
	due := time.Unix(1000, 0)
	return &measure.Request{
		ID: "w/0/1", Outcome: measure.OK, Usage: measure.Usage{Output: 2},
		Timeline: measure.Timeline{
			Planned: due, Due: due, Ready: due, Lane: due, Write: due.Add(late), Chunks: []time.Duration{ttft, ttft + tpot},
		},
	}
}

// ended returns a ledger with the given counts.
func ended(ok, failed, dropped int64) measure.Ledger {
	return measure.Ledger{
		Outcomes: map[measure.Outcome]int64{measure.OK: ok, measure.HTTP429: failed}, Dropped: map[measure.DropReason]int64{measure.Overload: dropped}, Filtered: 7,
	}
}

func TestView(t *testing.T) {
	p := &Progress{}
	expect := func(want ...string) {
		t.Helper()
		var got []string
		for _, f := range (view{observed: p.observed, ended: true}).figures() {
			got = append(got, f.text)
		}
		if diff := cmp.Diff(append([]string{"0 failed"}, want...), got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	expect()

	// Never sent: no lateness.
	p.Observe(&measure.Request{Outcome: measure.ConnectFailed, Error: "no route"})
	expect("last error: connect: no route")

	// One token has no TPOT.
	one := request(250*time.Microsecond, 20*time.Millisecond, 0)
	one.Usage.Output, one.Timeline.Chunks = 1, one.Timeline.Chunks[:1]
	p = &Progress{}
	p.Observe(one)
	expect("TTFT p50 20 ms", "p99 20 ms", "lateness p99 250 µs")

	// The values 1 to 100 have p50 50.5 and p99 99.01.
	p = &Progress{}
	for i := 100; i > 0; i-- {
		n := time.Duration(i)
		p.Observe(request(n*time.Microsecond, n*20*time.Millisecond, n*time.Millisecond))
	}
	expect("TTFT p50 1.01 s", "p99 1.98 s", "TPOT p50 50 ms", "lateness p99 99 µs") // of 50.5 ms, fmt takes the even one

	// Only the last 512 requests count.
	for range recent {
		p.Observe(request(0, 3*time.Millisecond, time.Millisecond))
	}
	expect("TTFT p50 3.0 ms", "p99 3.0 ms", "TPOT p50 1.0 ms", "lateness p99 0 µs")
}

// A cancelled request is not a failure, and warm-up requests are not counted.
func TestViewOfCancelledAndWarmup(t *testing.T) {
	p := &Progress{}
	p.Observe(&measure.Request{Outcome: measure.Cancelled, Error: "cancelled after 500ms"})
	warm := request(time.Millisecond, 20*time.Millisecond, time.Millisecond)
	warm.Phase = measure.Warmup
	p.Observe(warm)
	l := ended(0, 0, 0)
	l.Outcomes[measure.Cancelled] = 1
	v := view{Outlook: Outlook{Requests: 4, Ledger: l}, observed: p.observed}
	if v.lastErr != "" || len(v.ttft) > 0 || len(v.lateness) > 0 {
		t.Errorf("want nothing of either, got %+v", v)
	}
	if v.done() != 1 || !strings.Contains(v.lines(200)[0], "0 failed  1 cancelled") {
		t.Errorf("%d done: %q", v.done(), v.lines(200))
	}
}

// wait lets virtual time pass.
func wait(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// counted is a Progress with the ledger of the requests that it observes.
type counted struct {
	Progress
	mu     sync.Mutex
	ledger measure.Ledger
}

func (c *counted) count(ok, failed, dropped int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger = c.ledger.Add(ended(ok, failed, dropped))
}

func (c *counted) Observe(r *measure.Request) {
	c.Progress.Observe(r)
	if r.Outcome == measure.OK {
		c.count(1, 0, 0)
	} else {
		c.count(0, 1, 0)
	}
}

func (c *counted) outlook() Outlook {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Outlook{Ledger: c.ledger}
}

// follow runs one way to show progress in a bubble, lets time pass and ends it.
func follow(t *testing.T, show func(p *counted, done <-chan struct{}), pass func(p *counted)) {
	synctest.Test(t, func(*testing.T) {
		p, done, ended := &counted{}, make(chan struct{}), make(chan struct{})
		go func() {
			show(p, done)
			close(ended)
		}()
		pass(p)
		close(done)
		<-ended
	})
}

// The rate covers the last 10 s: 2 requests a second in the first 5 s, none in the next 5 s, then 1 a second.
func TestRate(t *testing.T) {
	var got []string
	log := func(p *counted) {
		p.Progress.mu.Lock()
		defer p.Progress.mu.Unlock()
		got = append(got, fmt.Sprintf("%.1f", p.rate()))
	}
	follow(t, func(p *counted, done <-chan struct{}) {
		p.follow(p.outlook, done, func(view) {})
	}, func(p *counted) {
		wait(time.Millisecond) // so that a request done at a second is counted after the mark of that second
		log(p)
		for second := range 30 {
			switch {
			case second < 5:
				p.Observe(request(0, 0, 0))
				p.Observe(&measure.Request{Outcome: measure.Empty})
				p.count(0, 0, 1) // dropped, not finished
			case second >= 10:
				p.Observe(request(0, 0, 0))
			}
			wait(time.Second)
			if second == 0 || second%5 == 4 {
				log(p)
			}
		}
	})
	if want := "[0.0 2.0 2.0 1.0 0.5 1.0 1.0 1.0]"; fmt.Sprint(got) != want {
		t.Errorf("rates\nwant %s\n got %v", want, got)
	}
}

// clocked writes the time before each line.
type clocked struct {
	strings.Builder
	begin time.Time
}

func (c *clocked) Write(line []byte) (int, error) {
	fmt.Fprintf(&c.Builder, "%v ", time.Since(c.begin))
	return c.Builder.Write(line)
}

// A log gets a line every 10 s at first, then every minute, and none at the end.
func TestLog(t *testing.T) {
	b := clocked{begin: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)} // the start of every bubble
	log := bare(&b)
	follow(t, func(p *counted, done <-chan struct{}) {
		p.Log(log, func() Outlook {
			o := p.outlook()
			o.Ledger.InFlight = 1
			o.Requests, o.Length, o.Left = 8, 4*time.Minute, 4*time.Minute-time.Since(b.begin)
			return o
		}, done)
	}, func(p *counted) {
		wait(15 * time.Second)
		p.count(0, 0, 1)
		p.Observe(&measure.Request{Outcome: measure.ConnectFailed, Error: "no route"})
		p.Observe(request(0, 20*time.Millisecond, time.Millisecond))
		wait(165*time.Second + time.Millisecond)
	})
	const first = "msg=progress done=0 of=8 ok=0 failed=0 dropped=0 in_flight=1 per_second=0.0"
	const then = "msg=progress done=3 of=8 ok=1 failed=1 dropped=1 in_flight=1"
	const last = `ttft_p50="20 ms" ttft_p99="20 ms" left=%s last_error="connect: no route"` + "\n"
	want := "10s " + first + " left=3m50s\n"
	for _, l := range []struct{ at, rate, left string }{
		{"20s", "0.2", "3m40s"},
		{"30s", "0.0", "3m30s"},
		{"40s", "0.0", "3m20s"},
		{"50s", "0.0", "3m10s"},
		{"1m0s", "0.0", "3m"},
		{"2m0s", "0.0", "2m"},
		{"3m0s", "0.0", "1m"},
	} {
		want += fmt.Sprintf("%s %s per_second=%s "+last, l.at, then, l.rate, l.left)
	}
	if b.String() != want {
		t.Errorf("\nwant %s\n got %s", want, b.String())
	}
}

// Print writes the first line early.
func TestPrint(t *testing.T) {
	out := &strings.Builder{}
	follow(t, func(p *counted, done <-chan struct{}) { p.Print(out, p.outlook, done) }, func(p *counted) {
		wait(4 * time.Second)
		p.Observe(request(0, 20*time.Millisecond, time.Millisecond))
		wait(9 * time.Second)
	})
	const want = `    3s  0 done  0.0/s  0 in flight  0 failed
    5s  1 done  0.2/s  0 in flight  0 failed  TTFT p50 20 ms  p99 20 ms  TPOT p50 1.0 ms  lateness p99 0 µs
   10s  1 done  0.1/s  0 in flight  0 failed  TTFT p50 20 ms  p99 20 ms  TPOT p50 1.0 ms  lateness p99 0 µs
`
	if out.String() != want {
		t.Errorf("\nwant %s\n got %s", want, out)
	}
}

// On a terminal a line is redrawn every second; the last one stays and is complete. The bar has the cells that the text
// leaves of 59 columns: 38 beside "  0 of 4  0s", 30 with "  ETA 3s" too.
func TestShow(t *testing.T) {
	s, y := terminal(t, 60)
	expect := func(want string) {
		t.Helper()
		if got := y.String(); got != want {
			t.Errorf("\nwant\n%s\n got\n%s", want, got)
		}
	}
	follow(t, func(p *counted, done <-chan struct{}) {
		p.Show(s, func() Outlook {
			o := p.outlook()
			o.Requests, o.Ledger.InFlight = 4, 1
			return o
		}, done)
	}, func(p *counted) {
		synctest.Wait()
		expect("[>                                     ]    0 %  0 of 4  0s\n0.0/s  1 in flight  0 failed\n")
		wait(500 * time.Millisecond)
		p.Observe(request(0, 20*time.Millisecond, time.Millisecond))
		expect("[>                                     ]    0 %  0 of 4  0s\n0.0/s  1 in flight  0 failed\n")
		wait(500 * time.Millisecond)
		fmt.Fprintln(s, "level=WARN")
		expect("level=WARN\n[=======>                      ]   25 %  1 of 4  1s  ETA 3s\n" +
			"1.0/s  1 in flight  0 failed  TTFT p50 20 ms  p99 20 ms\n")
		wait(700 * time.Millisecond)
		for range 3 {
			p.Observe(request(0, 20*time.Millisecond, time.Millisecond))
		}
	})
	fmt.Fprintln(s, "report")
	expect("level=WARN\n[======================================]  100 %  4 of 4  2s\n" +
		"0 failed  TTFT p50 20 ms  p99 20 ms  TPOT p50 1.0 ms\nreport\n\n")
}
