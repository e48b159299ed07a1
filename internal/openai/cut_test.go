package openai

import (
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

// An answer is cut into two reads at every byte, also inside heads, chunk sizes, lines and multi-byte characters.
// The result is the same for every cut, and each chunk has the time of the read with its last byte.
func TestLaneEveryCut(t *testing.T) {
	parts := []string{delta(""), delta("Grüße"), delta("b") + delta("c"), finish("stop") + done}
	answer := "HTTP/1.1 100 Continue\r\n\r\n" + streamHead
	var ends []int // the offset after the last byte of each content chunk's data line
	for _, part := range parts {
		head := len(answer) + len(chunked(part)) - len(part) - 2
		answer += chunked(part)
		for i := 0; i < len(part); {
			line := strings.Index(part[i:], "\n\n") + i
			if text := part[i:line]; strings.Contains(text, "content") && !strings.Contains(text, `"content":""`) {
				ends = append(ends, head+line+1)
			}
			i = line + 2
		}
	}
	answer += bodyEnd
	if len(ends) != 3 {
		t.Fatalf("%d content chunks, want 3", len(ends))
	}
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{Options: Options{Timeouts: limits}})
		over(t, c, func(_ int, conn net.Conn) {
			for cut := 1; cut < len(answer); cut++ {
				if _, _, err := request(conn); err != nil {
					t.Errorf("cut %d: %v", cut, err)
					return
				}
				send(conn, answer[:cut])
				pass(time.Millisecond)
				send(conn, answer[cut:])
			}
		})
		l := c.Lane()
		defer l.Close()
		var req measure.Request
		for cut := 1; cut < len(answer); cut++ {
			do(t, l, &req)
			var want []time.Duration
			merged := map[time.Duration]int{}
			for _, end := range ends {
				at := time.Duration(0)
				if end > cut {
					at = time.Millisecond
				}
				want = append(want, at)
				merged[at]++
			}
			reads := 0
			for _, n := range merged {
				if n > 1 {
					reads++
				}
			}
			if req.Outcome != measure.OK || !slices.Equal(req.Timeline.Chunks, want) || req.Timeline.MergedReads != reads || req.Events != 5 || req.Retried {
				t.Fatalf("cut at %d, %q: want %v and %d coalesced reads, got %+v", cut, answer[:cut], want, reads, req)
			}
		}
	})
}
