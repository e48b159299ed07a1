package openai

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/test/outside"
)

// patient are the timeouts of tests over TCP, which are not about them.
var patient = Timeouts{Connect: outside.Patience, FirstToken: outside.Patience, Stall: outside.Patience, Total: 10 * time.Minute}

var limits = Timeouts{Connect: 5 * time.Second, FirstToken: 60 * time.Second, Stall: 30 * time.Second, Total: 10 * time.Minute}

// All times of a streamed answer are exact to the nanosecond.
func TestLaneTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{Options: Options{Timeouts: limits}})
		over(t, c, func(_ int, conn net.Conn) {
			for range 2 {
				if _, _, err := request(conn); err != nil {
					t.Error(err)
					return
				}
				pass(40 * time.Millisecond)
				send(conn, streamHead+chunked(delta(""))) // the role chunk has no content
				pass(10*time.Millisecond + 1)
				send(conn, chunked(delta("a")))
				pass(7 * time.Millisecond)
				send(conn, chunked(delta("b"))+chunked(delta("c"))) // two chunks in one read
				pass(3 * time.Millisecond)
				send(conn, chunked(delta("d")[:20])) // one chunk in two reads: the time of the second counts
				pass(2 * time.Millisecond)
				send(conn, chunked(delta("d")[20:]))
				pass(time.Second)
				send(conn, chunked(finish("length"))+chunked(`data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7}}`+"\n\n"))
				pass(time.Second / 2) // after usage the end is waited for, for a second
				send(conn, chunked(done)+bodyEnd)
			}
		})
		l := c.Lane()
		defer l.Close()
		var req measure.Request
		for range 2 { // the second request reuses the connection and the slices of the first
			start := time.Now()
			do(t, l, &req)
			tl := req.Timeline
			first := 50*time.Millisecond + 1
			want := []time.Duration{first, first + 7*time.Millisecond, first + 7*time.Millisecond, first + 12*time.Millisecond}
			if !tl.Write.Equal(start) || !slices.Equal(tl.Chunks,
				want) || tl.End.Sub(start) != first+12*time.Millisecond+1500*time.Millisecond {
				t.Errorf("write at +%v, chunks %v, want %v, end at +%v", tl.Write.Sub(start), tl.Chunks, want, tl.End.Sub(start))
			}
			if tl.MergedReads != 1 || tl.Kernel || len(tl.ReadDelays) != 0 {
				t.Errorf("coalesced reads %d, want 1; kernel %v and read delays %v, want none over a pipe", tl.MergedReads, tl.Kernel, tl.ReadDelays)
			}
			usage := measure.Usage{Prompt: 9, Output: 7, Source: measure.UsageFinal}
			if req.Outcome != measure.OK || req.Status != 200 || req.FinishReason != "length" || req.Usage != usage || req.Events != 7 || req.Retried {
				t.Errorf("got %+v", req)
			}
		}
		if !l.Fresh(time.Now().Add(DefaultIdle - 1)) {
			t.Error("want a connection that is fresh for 4 s")
		}
		c.Renew()
		if l.Fresh(time.Now()) {
			t.Error("want a connection of before Renew not to be used again")
		}
	})
}

// A head with lines that end in LF alone, all or some of them, ends at its empty line: the chunks after it have their own
// times. An answer without a Content-Type is read as the type that was asked for.
func TestLooseHeads(t *testing.T) {
	for _, head := range []string{
		strings.ReplaceAll(streamHead, "\r\n", "\n"), strings.TrimSuffix(streamHead, "\r\n") + "\n",
		strings.TrimSuffix(streamHead, "\r\n\r\n") + "\n\r\n",
		"HTTP/1.1 100 Continue\n\n" + streamHead, streamHead,
		strings.Replace(streamHead, "Content-Type: text/event-stream\r\n", "", 1),
		strings.Replace(streamHead, "\r\n", "\nX-Long: "+strings.Repeat("x", 5000)+"\n", 1),
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, Target{Options: Options{Timeouts: limits}})
			over(t, c, func(_ int, conn net.Conn) {
				for range 2 {
					_, _, _ = request(conn)
					pass(time.Millisecond)
					send(conn, head[:len(head)/2])
					pass(time.Millisecond)
					send(conn, head[len(head)/2:])
					pass(time.Millisecond)
					send(conn, chunked(delta("a")))
					pass(time.Millisecond)
					send(conn, chunked(delta("b"))+chunked(finish("stop"))+bodyEnd)
				}
			})
			l := c.Lane()
			defer l.Close()
			for range 2 {
				var req measure.Request
				do(t, l, &req)
				want := []time.Duration{3 * time.Millisecond, 4 * time.Millisecond}
				if !slices.Equal(req.Timeline.Chunks, want) || req.Outcome != measure.OK ||
					req.Timeline.Head.Sub(req.Timeline.Write) != 2*time.Millisecond {
					t.Errorf("%.80q: want chunks at %v, got %v, %s %s", head, want, req.Timeline.Chunks, req.Outcome, req.Error)
				}
			}
			if c.Untyped() == strings.Contains(head, "Type") {
				t.Errorf("%q: untyped is %v", head, c.Untyped())
			}
		})
	}
}

// Only the request that opens a connection has a connect time.
func TestLaneConnectTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{})
		over(t, c, func(_ int, conn net.Conn) {
			for {
				if _, _, err := request(conn); err != nil {
					return
				}
				send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
			}
		})
		dial := c.dial
		c.dial = func(ctx context.Context, n, a string) (net.Conn, error) {
			pass(30 * time.Millisecond)
			return dial(ctx, n, a)
		}
		l := c.Lane()
		defer l.Close()
		var req measure.Request
		for _, want := range ms(30, 0) {
			do(t, l, &req)
			if req.Timeline.Connect != want || req.Outcome != measure.OK {
				t.Errorf("connect %v, want %v; outcome %s", req.Timeline.Connect, want, req.Outcome)
			}
		}
		pass(DefaultIdle)
		do(t, l, &req)
		if want := 30 * time.Millisecond; req.Timeline.Connect != want {
			t.Errorf("after 4 s of rest: connect %v, want %v", req.Timeline.Connect, want)
		}
	})
}

// If a kept connection was closed, the request is sent again once, and its times count from the first write.
func TestLaneRetry(t *testing.T) {
	for name, c := range map[string]struct {
		second  func(conn net.Conn)
		outcome measure.Outcome
		retried bool
		dials   int
	}{
		"the second try is answered": {func(conn net.Conn) {
			if _, _, err := request(conn); err == nil {
				pass(20 * time.Millisecond)
				send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
			}
		}, measure.OK, true, 2},
		"the second try fails too": {func(conn net.Conn) {
			_, _, _ = request(conn)
			_ = conn.Close()
		}, measure.NoAnswer, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t, Target{Options: Options{Timeouts: limits}})
				dials := 0
				over(t, client, func(n int, conn net.Conn) {
					dials++
					if n > 0 {
						c.second(conn)
						return
					}
					_, _, _ = request(conn)
					send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
					_, _, _ = request(conn) // the message is lost when the connection is closed
					pass(5 * time.Millisecond)
					_ = conn.Close()
				})
				l := client.Lane()
				defer l.Close()
				var req measure.Request
				do(t, l, &req)
				if req.Outcome != measure.OK || req.Retried {
					t.Fatalf("first request: %+v", req)
				}
				start := time.Now()
				do(t, l, &req)
				if req.Outcome != c.outcome || req.Retried != c.retried || dials != c.dials {
					t.Errorf("got %s, retried %v, %d dials: %s", req.Outcome, req.Retried, dials, req.Error)
				}
				if at := req.Timeline.Write.Sub(start); at != 0 {
					t.Errorf("write at +%v, want the first one's", at)
				}
				if c.outcome == measure.OK && !slices.Equal(req.Timeline.Chunks, ms(25)) {
					t.Errorf("chunks %v, want 25ms after the first write", req.Timeline.Chunks)
				}
			})
		})
	}
}

// There is no retry if a new connection is closed, or if the answer has already begun.
func TestLaneNoRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{Options: Options{Timeouts: limits}})
		dials := 0
		over(t, c, func(n int, conn net.Conn) {
			dials++
			if n > 0 {
				_, _, _ = request(conn)
				send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
				_, _, _ = request(conn)
				send(conn, "H")
			}
			_ = conn.Close()
		})
		l := c.Lane()
		defer l.Close()
		var req measure.Request
		for i, want := range []measure.Outcome{measure.NoAnswer, measure.OK, measure.Truncated} {
			do(t, l, &req)
			if req.Outcome != want || req.Retried {
				t.Errorf("request %d: want %s without a retry, got %s, %v: %s", i, want, req.Outcome, req.Retried, req.Error)
			}
		}
		if dials != 2 {
			t.Errorf("%d dials, want 2", dials)
		}
	})
}

// A hard stop ends the request at once and closes the connection, in any phase of the request.
func TestLaneAborted(t *testing.T) {
	for name, serve := range map[string]func(conn net.Conn){
		"in the write":  func(net.Conn) {},
		"in the head":   func(conn net.Conn) { _, _, _ = request(conn); send(conn, "HTTP/1.1 200") },
		"in the stream": func(conn net.Conn) { _, _, _ = request(conn); send(conn, streamHead+chunked(delta("a"))) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, Target{Options: Options{Timeouts: limits}})
				over(t, c, func(_ int, conn net.Conn) { serve(conn) })
				l := c.Lane()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var req measure.Request
				start := time.Now()
				doContext(ctx, t, l, &req)
				if req.Outcome != measure.Aborted || time.Since(start) != time.Second || l.Fresh(time.Now()) {
					t.Errorf("want aborted after 1s without a connection, got %s after %v: %s", req.Outcome, time.Since(start), req.Error)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // while dialing
		c := newClient(t, Target{})
		c.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var req measure.Request
		doContext(ctx, t, c.Lane(), &req)
		if req.Outcome != measure.Aborted {
			t.Errorf("want aborted, got %s: %s", req.Outcome, req.Error)
		}
	})
}

// After [DONE] or an error, the lane waits for the end of the body, for a limited time and number of bytes.
func TestLaneDrain(t *testing.T) {
	failing := `data: {"error":"broken"}` + "\n\n"
	for name, c := range map[string]struct {
		tail    func(conn net.Conn)
		outcome measure.Outcome
		after   time.Duration
		kept    bool
	}{
		"late end": {func(conn net.Conn) {
			send(conn, chunked(done))
			pass(900 * time.Millisecond)
			send(conn, bodyEnd)
		}, measure.OK, 900 * time.Millisecond, true},
		"no end":       {func(conn net.Conn) { send(conn, chunked(done)) }, measure.OK, drainTime, false},
		"too much":     {func(conn net.Conn) { send(conn, chunked(done)+chunked(strings.Repeat(":\n", 50<<10))) }, measure.OK, 0, false},
		"error, end":   {func(conn net.Conn) { send(conn, chunked(failing)+chunked(done)+bodyEnd) }, measure.ErrorEvent, 0, true},
		"error, stuck": {func(conn net.Conn) { send(conn, chunked(failing)) }, measure.ErrorEvent, drainTime, false},
		"a byte more":  {func(conn net.Conn) { send(conn, chunked(done)+bodyEnd+"H") }, measure.OK, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t, Target{Options: Options{Timeouts: limits}})
				over(t, client, func(_ int, conn net.Conn) {
					_, _, _ = request(conn)
					send(conn, streamHead+chunked(delta("a")))
					c.tail(conn)
				})
				l := client.Lane()
				defer l.Close()
				var req measure.Request
				start := time.Now()
				do(t, l, &req)
				if req.Outcome != c.outcome || time.Since(start) != c.after || l.Fresh(time.Now()) != c.kept {
					t.Errorf("want %s after %v, kept %v; got %s after %v, kept %v: %s", c.outcome, c.after, c.kept,
						req.Outcome, time.Since(start), l.Fresh(time.Now()), req.Error)
				}
			})
		})
	}
}
