package security_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"replayd/test/outside"
)

// held are the connections that a flood keeps open at its end, as many as the descriptors of a test allow.
const held = 15_000

// A flood is many visitors without a password.
type flood struct {
	server    string
	addresses int // of this host, from 127.0.0.2 on; 0: that of the scraper alone
	kept      chan net.Conn
	came      atomic.Int64
}

// dial connects as visitor n. Beyond held the first connection is closed.
func (c *flood) dial(ctx context.Context, n int) (net.Conn, error) {
	d := net.Dialer{Timeout: outside.Patience}
	if c.addresses > 0 {
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+n%c.addresses))}
	}
	conn, err := d.DialContext(ctx, "tcp", c.server)
	if err != nil {
		return nil, err
	}
	c.came.Add(1)
	for {
		select {
		case c.kept <- conn:
			return conn, nil
		default:
			_ = (<-c.kept).Close()
		}
	}
}

// halfOpen begins a request with a header of up to 62 KB, and does not end it.
func (c *flood) halfOpen(ctx context.Context, n int) {
	conn, err := c.dial(ctx, n)
	if err != nil {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: a\r\nX-Long: "+strings.Repeat("x", []int{11_000, 62_000, 62_000, 62_000}[n%4]))
}

// idle makes one request, and keeps the connection.
func (c *flood) idle(ctx context.Context, n int) {
	conn, err := c.dial(ctx, n)
	if err != nil {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(conn, "GET /-/healthy HTTP/1.1\r\nHost: a\r\n\r\n")
	if answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil); err == nil {
		_ = answer.Body.Close()
	}
}

// visit sends n visitors, some at a time.
func (c *flood) visit(ctx context.Context, n int, visitor func(context.Context, int)) {
	var all sync.WaitGroup
	next := atomic.Int64{}
	for range 32 {
		all.Go(func() {
			for i := int(next.Add(1)); i <= n && ctx.Err() == nil; i = int(next.Add(1)) {
				visitor(ctx, i)
			}
		})
	}
	all.Wait()
}

func (c *flood) leave() {
	close(c.kept)
	for conn := range c.kept {
		_ = conn.Close()
	}
}

// scrapes scrapes once a second until it is ended. The function that it returns ends it, and says how many were answered.
func scrapes(t *testing.T, url string) (end func() (asked, answered int, slowest time.Duration)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var asked, answered int
	var slowest time.Duration
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			begin := time.Now()
			err := scrape(t.Context(), url)
			asked++
			slowest = max(slowest, time.Since(begin))
			if err == nil {
				answered++
			} else if asked-answered < 4 {
				t.Log(err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() (int, int, time.Duration) {
		cancel()
		running.Wait()
		return asked, answered, slowest.Round(time.Millisecond)
	}
}

// opened returns how many descriptors a process has open; 0 where that cannot be seen.
func opened(t *testing.T, p *outside.Process) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// A flood of half-open and of idle visitors costs no stream and no scrape, and its memory is bounded. SECURITY_HALF_OPEN=16000
// SECURITY_IDLE=26000 SECURITY_STREAMS=500 is its full size: make suite NAME=bench-attacks.
func TestFloodOfVisitors(t *testing.T) {
	half := outside.Knob(t, "SECURITY_HALF_OPEN", 1600, strconv.Atoi)
	idle := outside.Knob(t, "SECURITY_IDLE", 2600, strconv.Atoi)
	streams := outside.Knob(t, "SECURITY_STREAMS", 50, strconv.Atoi)
	for name, addresses := range map[string]int{"one address": 0, "200 addresses": 200} {
		if addresses > 0 && runtime.GOOS != "linux" {
			continue // elsewhere only 127.0.0.1 is an address of this host
		}
		t.Run(name, func(t *testing.T) {
			s := outside.NewStage(t, binary, "--ttft", "100ms", "--itl", "100ms")
			s.Write(t, fmt.Sprintf(`targets: [{name: sim, url: "http://%s"}]
workloads:
- {name: w, target: sim, synthetic: {input_tokens: 20, output_tokens: 30, requests: 100000}, arrival: concurrency, lanes: %d}
`, s.Engine, streams))
			daemon, _ := s.Serve(t)
			outside.See(t, s.URL(), "all streams", func(p outside.Page) bool { return p.Sum("replayd_requests_in_flight") == float64(streams) })
			c := &flood{server: s.Listen, addresses: addresses, kept: make(chan net.Conn, held)}
			end := scrapes(t, s.URL())
			begin := time.Now()
			const turns = 4
			descriptors := 0
			for range turns {
				c.visit(t.Context(), half/turns, c.halfOpen)
				descriptors = max(descriptors, opened(t, daemon))
				c.visit(t.Context(), idle/turns, c.idle)
				descriptors = max(descriptors, opened(t, daemon))
			}
			took := time.Since(begin)
			asked, answered, slowest := end()
			p := outside.See(t, s.URL(), "the page", func(outside.Page) bool { return true })
			before := p.Sum("replayd_requests_total")
			c.leave()
			p = outside.See(t, s.URL(), "the end of all streams that saw the flood", func(p outside.Page) bool {
				return p.Sum("replayd_requests_total") >= before+float64(streams)
			})
			ok, all := p.Sum("replayd_requests_total", "ok"), p.Sum("replayd_requests_total")
			dropped, rss := p.Sum("replayd_requests_dropped_total"), 0.0
			if runtime.GOOS == "linux" {
				rss = peak(t, daemon.Cmd.Process.Pid)
			}
			t.Logf("%d visitors in %v beside %d streams: %d of %d scrapes answered, the slowest in %v; %.0f of %.0f requests ok, %.0f dropped; at most %d descriptors open; peak RSS %.0f MiB",
				c.came.Load(), took.Round(time.Second), streams, answered, asked, slowest, ok, all, dropped, descriptors, rss)
			t.Logf("closed: %.0f evicted, %.0f refused, %.0f idle, %.0f too large", p.Sum("replayd_web_connections_closed_total", "evicted"), p.Sum("replayd_web_connections_closed_total", "refused"),
				p.Sum("replayd_web_connections_closed_total", "idle"), p.Sum("replayd_web_connections_closed_total", "too_large"))
			// Visitors from the scraper's own address share its quarter: under a flood a scrape of theirs can be cut off.
			if addresses > 0 && answered != asked || ok != all || dropped != 0 || rss >= 256 || descriptors > 512+2*streams+50 {
				t.Error("want every scrape answered, every stream ok, at most 512 connections and less than 256 MiB")
			}
			if came := c.came.Load(); came < int64(half/turns+idle/turns)*turns/2 {
				t.Errorf("want most of the visitors to come, got %d", came)
			}
			daemon.Term(t)
		})
	}
}

// With few descriptors silent visitors do not take those of the replay: no request fails, and each scrape is answered.
func TestVisitorsLeaveDescriptors(t *testing.T) {
	s := outside.NewStage(t, binary, "--ttft", "10ms", "--itl", "1ms")
	s.Write(t, fmt.Sprintf(`targets: [{name: sim, url: "http://%s", idle: 10ms, metrics: {interval: 10s}}]
workloads:
- {name: w, target: sim, synthetic: {input_tokens: 20, output_tokens: 10, requests: 100000}, arrival: concurrency, lanes: 16}
`, s.Engine))
	daemon := outside.Start(t, filepath.Join(s.Dir, "few.out"), "sh", "-c", `ulimit -n 64; exec "$0" serve --config "$1" --web.listen-address "$2"`, binary, s.Config, s.Listen)
	daemon.Ready(t, http.DefaultClient, s.URL()+"/-/ready")
	var all []net.Conn
	for i := range 300 {
		d := net.Dialer{Timeout: time.Second}
		if runtime.GOOS == "linux" {
			d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%50))}
		}
		if conn, err := d.DialContext(t.Context(), "tcp", s.Listen); err == nil {
			all = append(all, conn)
		}
	}
	end := scrapes(t, s.URL())
	p := outside.See(t, s.URL(), "8000 requests that ended", func(p outside.Page) bool { return p.Sum("replayd_requests_total") >= 8000 })
	asked, answered, slowest := end()
	for _, conn := range all {
		_ = conn.Close()
	}
	ok, ended, dropped := p.Sum("replayd_requests_total", "ok"), p.Sum("replayd_requests_total"), p.Sum("replayd_requests_dropped_total")
	t.Logf("%d visitors: %d of %d scrapes answered, the slowest in %v; %.0f of %.0f requests ok, %.0f connect, %.0f dropped; %.0f scrapes of the engine failed",
		len(all), answered, asked, slowest, ok, ended, p.Sum("replayd_requests_total", "connect"), dropped, p.Sum("replayd_engine_scrape_errors_total"))
	if answered != asked || ok != ended || dropped != 0 || p.Sum("replayd_engine_scrape_errors_total") != 0 {
		t.Error("want every scrape answered, here and of the engine, and every request ok")
	}
	daemon.Term(t)
}
