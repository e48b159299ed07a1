package records

import (
	"fmt"
	"log/slog"
	"time"
)

// sinkRecovery is how long records must be written for a failure to be over. A disk that is full takes a little now and then, and
// that is not worth two lines in the log each time.
const sinkRecovery = time.Minute

// A failure is a time in which records are lost. The log gets a line at its beginning and one at its end.
type failure struct {
	log    *slog.Logger
	err    string    // what the log knows; "" while there is no failure
	last   time.Time // when it was seen last
	losses uint64    // until the end of the one before
}

// report says that records are lost now, and why.
func (f *failure) report(err error) {
	if err.Error() != f.err {
		f.log.Error("records are lost: the file cannot be written", "err", err)
	}
	f.known(err)
}

// known is report for an error that the caller logs.
func (f *failure) known(err error) {
	f.err, f.last = err.Error(), time.Now()
}

// written says that records are written now.
func (f *failure) written(path string, losses uint64) {
	if time.Since(f.last) >= sinkRecovery {
		f.end("records are written again", path, losses)
	}
}

// end ends the failure, if there is one. Losses are those since the start of the process.
func (f *failure) end(message, path string, losses uint64) {
	if f.err == "" {
		return
	}
	f.log.Info(message, "path", path, "lost", losses-f.losses)
	f.err, f.losses = "", losses
}

func tooSlow(path string) error {
	return fmt.Errorf("records: %s does not take them in time", path)
}
