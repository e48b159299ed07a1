package scrape

import (
	"fmt"
	"hash/maphash"
	"net/http"
	"strconv"
	"time"
)

// A stamp tells a copy of a page from a new one.
type stamp struct {
	age  time.Duration // that the cache in between states; 0: none does
	date uint64        // hash of the server's time at which it was made; 0: not stated
	sum  uint64        // of its bytes
}

var stampSeed = maphash.MakeSeed()

func stampOf(h http.Header, body []byte) stamp {
	age, err := strconv.ParseUint(h.Get("Age"), 10, 31) // RFC 9111, 5.1
	if err != nil {
		age = 0
	}
	date := uint64(0)
	if text := h.Get("Date"); text != "" {
		date = maphash.String(stampSeed, text)
	}
	return stamp{time.Duration(age) * time.Second, date, maphash.Bytes(stampSeed, body)}
}

// When pages are held to be copies of an earlier one.
const (
	tick       = 2 * time.Second // a Date has whole seconds
	samePages  = 3
	sameFor    = 10 * time.Second // an engine counts a request a moment after its answer
	noRequests = -1
)

// copies detects pages that come from a cache between an engine and replayd. Its zero value has seen no page.
type copies struct {
	last    stamp
	at      time.Time // start of the scrape before
	same    int       // pages with the latest bytes, one after the other
	first   time.Time // start of the scrape of the first of them
	settled bool      // every request that the first of them counts has ended for replayd, too
	ended   int64     // requests that had ended by then
	since   time.Time // when another had; zero: none has
}

// judge returns why a page that was asked for at an instant is a copy of an earlier one; nil: no sign of that. ended is the number of
// ended requests that this very page must count; noRequests: none. No clock of a server or a cache is compared with this process's.
func (c *copies) judge(now stamp, at time.Time, interval time.Duration, ended int64) error {
	before, gap := c.last, at.Sub(c.at)
	c.last, c.at = now, at
	switch {
	case c.same == 0, now.sum != before.sum, c.settled && ended < c.ended: // or another client counts
		c.same, c.first, c.settled, c.ended, c.since = 0, at, false, 0, time.Time{}
	case !c.settled && at.Sub(c.first) >= tick:
		c.settled, c.ended = true, ended
	case c.settled && ended > c.ended && c.since.IsZero():
		c.since = at
	}
	c.same++
	switch {
	case now.age > interval:
		return fmt.Errorf("want the engine's page, got a cache's copy that is %v old", now.age)
	case c.same > 1 && now.date != 0 && now.date == before.date && gap >= tick:
		return fmt.Errorf("want a new page, got the one before again, with its Date, %v later", gap.Round(time.Second))
	case c.same >= samePages && !c.since.IsZero() && at.Sub(c.since) >= sameFor:
		return fmt.Errorf("want a page that counts the %d requests that have ended, got the same bytes for the %dth time", ended-c.ended, c.same)
	}
	return nil
}
