package records

import (
	"fmt"
	"log/slog"
	"time"
)

// sinkRecovery is how long records must be written before a failure is over. A full disk accepts a little from time to
// time, which would otherwise log two lines each time.
const sinkRecovery = time.Minute

// A failure is a period in which records are lost. Its beginning and its end are logged.
type failure struct {
	log    *slog.Logger
	err    string    // the logged error; "": no failure
	last   time.Time // time of the latest error
	losses uint64    // lost records at the end of the previous failure
}

func (f *failure) report(err error) {
	if err.Error() != f.err {
		f.log.Error("records are lost: the file cannot be written", "err", err)
	}
	f.known(err)
}

// known is report without the log line, for an error that the caller logs.
func (f *failure) known(err error) {
	f.err, f.last = err.Error(), time.Now()
}

// written ends the failure if the latest error is older than sinkRecovery.
func (f *failure) written(path string, losses uint64) {
	if time.Since(f.last) >= sinkRecovery {
		f.end("records are written again", path, losses)
	}
}

// end ends the failure, if there is one. losses counts since the start of the process.
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
