// Package wire reads and writes HTTP/1.1 and server-sent events on a connection, with the time at which bytes arrived. A
// [Conn] has the kernel's receive timestamps and a deadline that may move with every chunk. A [Reader] finds a body in the
// bytes. A [Scanner] splits a stream into events. A [Pool] keeps open connections. The package knows neither requests nor
// the content of a body. Between the socket and the event it does not allocate.
package wire

import "time"

// An Arrival is the time at which bytes arrived, and its source.
type Arrival struct {
	At     time.Time     // the kernel's receive timestamp of the last segment, else the time after the read
	Delay  time.Duration // time of the read − At; 0 without a stamp
	Kernel bool          // At is the kernel's timestamp
	Unsure bool          // the wall clock was set meanwhile: At is late by up to that, and by up to the true Delay
	Read   uint64        // number of the socket read on this connection
}

// ReadAt returns the time of the read.
func (a Arrival) ReadAt() time.Time { return a.At.Add(a.Delay) }

// grown returns b with room for n more bytes, up to most bytes in total. It doubles the capacity, so that it leaves less
// garbage than append, which grows large slices by a quarter.
func grown(b []byte, n, most int) []byte {
	if len(b)+n <= cap(b) || len(b)+n > most {
		return b
	}
	larger := make([]byte, len(b), min(max(2*cap(b), len(b)+n), most))
	copy(larger, b)
	return larger
}
