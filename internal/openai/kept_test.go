package openai

import (
	"time"

	"replayd/internal/openai/internal/wire"
)

// Fresh reports whether the lane's pod has an idle connection that may be used at now.
func (l *Lane) Fresh(now time.Time) bool {
	return l.pod.pool.Fresh(now, l.client.target.Idle) > 0
}

// left returns the connection that a request has left to the next one; nil: none.
func (l *Lane) left() *wire.Conn {
	c := l.pod.pool.Take(time.Now(), l.client.target.Idle, 1)
	if c != nil {
		l.pod.pool.Put(c)
	}
	return c
}
