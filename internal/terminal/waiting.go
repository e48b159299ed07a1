package terminal

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Waiting shows that a target does not answer yet: in one line on a terminal, otherwise in a log.
type Waiting struct {
	screen   *Screen
	log      *slog.Logger
	patience time.Duration
	begin    time.Time
	next     time.Time // of the next log line
}

// NewWaiting starts to wait, for at most patience. Without a screen it writes to the log.
func NewWaiting(s *Screen, log *slog.Logger, patience time.Duration) *Waiting {
	return &Waiting{screen: s, log: log, patience: patience, begin: time.Now()}
}

// Tried takes the result of an attempt to reach a target. The log gets the first failure, then one failure a minute,
// and the success after failures.
func (w *Waiting) Tried(url string, err error) {
	now := time.Now()
	waited := seconds(now.Sub(w.begin))
	switch failed := !w.next.IsZero(); {
	case err == nil && w.screen != nil:
		w.screen.Draw()
	case err == nil && failed:
		w.log.Info("the target is ready", "url", url, "waited", waited)
	case err == nil:
	case w.screen != nil:
		w.screen.Draw(w.line(url, err, waited, w.screen.Width()-1))
	case !now.Before(w.next):
		w.next = now.Add(time.Minute)
		w.log.Info("waiting for the target", "url", url, "waited", waited, "at_most", seconds(w.patience), "err", err)
	}
}

// line returns the longest form of the text that fits. The error itself names the request and the target.
func (w *Waiting) line(url string, err error, waited string, room int) string {
	time := fmt.Sprintf(", %s of %s", waited, seconds(w.patience))
	text := err.Error()
	last := text[strings.LastIndex(text, ": ")+1:] // what the operating system or the server says
	for _, line := range []string{"waiting: " + text, "waiting for " + url + ":" + last, "waiting:" + last} {
		if Width(line+time) <= room {
			return line + time
		}
	}
	return cut("waiting"+time, room)
}
