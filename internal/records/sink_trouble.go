package records

import (
	"fmt"
	"log/slog"
	"time"
)

// sinkCalm is how long records must be written for trouble to be over. A disk that is full takes a little now and then, and
// that is not worth two lines in the log each time.
const sinkCalm = time.Minute

// A trouble is a time in which records are lost. The log hears of its beginning and of its end.
type trouble struct {
	log    *slog.Logger
	err    string    // what the log knows; "" when there is no trouble
	last   time.Time // when it was seen last
	losses uint64    // until the end of the one before
}

// complain says that records are lost now, and why.
func (t *trouble) complain(err error) {
	if err.Error() != t.err {
		t.log.Error("records are lost until they can be written", "err", err)
	}
	t.known(err)
}

// known is complain for an error that somebody else logs.
func (t *trouble) known(err error) {
	t.err, t.last = err.Error(), time.Now()
}

// calm says that records are written now.
func (t *trouble) calm(path string, losses uint64) {
	if time.Since(t.last) >= sinkCalm {
		t.over("records are written again", path, losses)
	}
}

// over ends the trouble, if there is any. Losses are those since the start of the process.
func (t *trouble) over(message, path string, losses uint64) {
	if t.err == "" {
		return
	}
	t.log.Info(message, "path", path, "lost", losses-t.losses)
	t.err, t.losses = "", losses
}

func tooSlow(path string) error {
	return fmt.Errorf("records: %s does not take them in time", path)
}
