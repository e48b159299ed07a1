package openai

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

// A fate is what something between a client and an engine does to one connection's request: after so many bytes of it, and of its
// answer, it holds the connection and ends it, or resets it.
type fate struct {
	request, answer int // bytes passed on
	held            time.Duration
	ends            bool // the connection, after the answer
	resets          bool // it ends as a reset
}

// A resettable is the near end of a pipe that the far end can reset: its next read and write say so, as a socket's do.
type resettable struct {
	net.Conn
	reset atomic.Bool
}

func (r *resettable) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	return n, r.fault("read", err)
}

func (r *resettable) Write(b []byte) (int, error) {
	n, err := r.Conn.Write(b)
	return n, r.fault("write", err)
}

func (r *resettable) fault(op string, err error) error {
	if err == nil || !r.reset.Load() {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(op, syscall.ECONNRESET)}
}

// A crossing is what became of the sends of one request.
type crossing struct {
	sends   int             // that have begun
	reached int             // the engine, whole
	lost    []time.Duration // how long after its first byte each send ended that had no byte of an answer
	begun   time.Time       // the first byte of the first send
	first   time.Time       // content was passed on
	whole   bool            // a proper end was passed on
}

// Whatever is lost between client and engine, at every byte of the request and of its answer: no request reaches the engine twice but
// where its connection ended at once, nothing that is lost is ok, and TTFT is no shorter than the wait of the user, which begins with the
// first send.
func TestLives(t *testing.T) {
	lives := 5000
	if testing.Short() {
		lives = 500
	}
	answer := streamHead + chunked(delta("a")) + chunked(delta("b")+finish("length")) + chunked(done) + bodyEnd
	content, proper := strings.Index(answer, `"a"`), strings.Index(answer, `"length"`)
	outcomes, twice := map[measure.Outcome]int{}, 0
	for life := range lives {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(life), 58))
			kept := ConnectionsKept
			if random.IntN(4) == 0 {
				kept = ConnectionsEach
			}
			c := newClient(t, Target{Options: Options{Connections: kept, Timeouts: Timeouts{FirstToken: 20 * time.Second, Stall: 5 * time.Second, Total: time.Minute}}})
			m := message(t, c)
			draw := func(of int) int { // each byte, and the end as often as all others
				if random.IntN(2) == 0 {
					return of
				}
				return random.IntN(of + 1)
			}
			var now *crossing
			ok := int64(0)
			var near []*resettable
			over(t, c, func(n int, conn net.Conn) {
				defer conn.Close()
				for {
					holds := []time.Duration{0, 0, time.Millisecond, 10 * time.Millisecond, 11 * time.Millisecond, 300 * time.Millisecond, 6 * time.Second, time.Hour}
					f := fate{draw(len(m)), draw(len(answer)), holds[random.IntN(len(holds))], random.IntN(3) == 0, random.IntN(2) == 0}
					b := make([]byte, len(m))
					if _, err := io.ReadFull(conn, b[:1]); err != nil {
						return
					}
					began := time.Now()
					x := now
					if x.sends++; x.sends == 1 {
						x.begun = began
					}
					if _, err := io.ReadFull(conn, b[1:max(1, f.request)]); err != nil {
						return
					}
					if f.request == len(m) {
						x.reached++
					} else {
						f.answer = 0
					}
					pass(f.held)
					near[n].reset.Store(f.resets && (f.answer < len(answer) || f.ends))
					if f.answer == 0 {
						x.lost = append(x.lost, time.Since(began))
						return
					}
					if f.answer > content && x.first.IsZero() {
						x.first = time.Now()
					}
					x.whole = x.whole || f.answer > proper
					if _, err := io.WriteString(conn, answer[:f.answer]); err != nil {
						return
					}
					if f.answer < len(answer) || f.ends {
						pass(f.held)
						return
					}
				}
			})
			dial := c.dial
			c.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				near = append(near, &resettable{Conn: conn})
				return near[len(near)-1], err
			}
			l := c.Lane()
			defer l.Close()
			for n := range 4 {
				now = &crossing{}
				x := now
				var req measure.Request
				l.Do(t.Context(), m, &req, Hooks{Again: func() ([]byte, error) { return m, nil }})
				synctest.Wait()
				if outcomes[req.Outcome]++; req.Outcome == measure.OK {
					ok++
				}
				if c.Answered() != ok {
					t.Errorf("life %d, request %d: %d answered, want %d", life, n, c.Answered(), ok)
				}
				if req.Retried {
					twice++
				}
				if most := map[bool]int{false: 1, true: 2}[req.Retried]; x.sends > most || x.reached > most {
					t.Errorf("life %d, request %d: %d sends, %d reached the engine, retried %v", life, n, x.sends, x.reached, req.Retried)
				}
				if x.sends == 2 && (len(x.lost) == 0 || x.lost[0] > 10*time.Millisecond) { // a send to a closed connection has no byte
					t.Errorf("life %d, request %d: sent again after %v, which is not at once", life, n, x.lost)
				}
				if req.Outcome == measure.OK && !x.whole {
					t.Errorf("life %d, request %d: ok, and its end was never passed on", life, n)
				}
				if len(req.Timeline.Chunks) > 0 && req.Timeline.Write.Add(req.Timeline.Chunks[0]).Sub(x.begun) < x.first.Sub(x.begun) ||
					x.sends > 0 && req.Timeline.Write.After(x.begun) {
					t.Errorf("life %d, request %d: written at +%v, content after %v; the user waited %v", life, n,
						req.Timeline.Write.Sub(x.begun), req.Timeline.Chunks, x.first.Sub(x.begun))
				}
				pass(time.Duration(random.IntN(3)) * time.Second)
			}
			pool := &c.pods.Load().all[0].pool
			idle := pool.Fresh(time.Now(), DefaultIdle)
			if n := pool.Reserve(idle+1, time.Now(), DefaultIdle); n != 1 {
				t.Errorf("life %d: %d places for one connection beside %d idle ones, at rest", life, n, idle)
			}
		})
	}
	t.Logf("%d lives, %d requests sent twice, %v", lives, twice, outcomes)
	for _, o := range []measure.Outcome{measure.OK, measure.NoAnswer, measure.Truncated, measure.TimeoutFirstToken, measure.TimeoutStall} {
		if outcomes[o] == 0 {
			t.Errorf("no request was %s", o)
		}
	}
}
