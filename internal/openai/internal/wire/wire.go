// Package wire moves the bytes of HTTP/1.1 and of server-sent events over a connection and tells when they came: a [Conn] with
// the kernel's receive stamps and a deadline that may move with every chunk, a [Reader] that finds a body in the bytes, a
// [Scanner] that splits a stream into events, a [Pool] of open connections. It knows neither requests nor the content of a body.
// Between the socket and the event nothing is allocated.
package wire

import "time"

// An Arrival is when and how some bytes came.
type Arrival struct {
	At     time.Time     // the kernel's receive stamp of the last segment, else the time after the read
	Delay  time.Duration // time of the read − At; 0 without a stamp
	Kernel bool          // At is the kernel's
	Read   uint64        // which socket read of this connection it was
}

// ReadAt is the time of the read that brought them.
func (a Arrival) ReadAt() time.Time { return a.At.Add(a.Delay) }
