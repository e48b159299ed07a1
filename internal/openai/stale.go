package openai

import "time"

// Bounds of the time after the write in which the end of a kept connection shows that it was stale.
const (
	staleSlack = 10 * time.Millisecond  // beyond two round trips, for the two hosts
	staleMost  = 250 * time.Millisecond // however distant the server is
)

// stale reports whether the connection has ended as a stale one does, so that the message may be sent again. It was open
// before, and no byte of the message was acknowledged, or the end came at once: the server had closed the connection while
// the message was on its way. After an answer only the second counts. A later end is no sign of that: the server may be
// running the message, and RFC 9110, section 9.2.2, lets a client repeat only requests that are known to be safe to repeat.
func (x *exchange) stale(answered bool) bool {
	if !x.out.kept || x.client.target.Retry == RetryNever {
		return false
	}
	taken, trip, known := x.conn.Taken()
	return known && !taken && !answered || x.held() <= min(2*trip+staleSlack, staleMost)
}

// held returns how long the server has had the message.
func (x *exchange) held() time.Duration { return time.Since(x.req.Timeline.Write) }
