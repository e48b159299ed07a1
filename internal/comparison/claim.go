package comparison

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/file"
)

// A Claim is a state file that this process may replace.
type Claim struct {
	configured string // path
	path       string // behind symbolic links: a rename would replace the link
	lock       *stateLock
	saved      []savedComparison // that the file had
}

// claim takes the lock of a state file, and reads the file. What cannot be read is set aside. It does not wait: while
// another process has the lock, the error is a *lockedError. If the lock cannot be made at all, because the folder is
// missing or full, each write tries again. now is the claim of this process; nil: none.
func claim(path string, now *Claim, to reporter) (*Claim, error) {
	target := file.Real(path)
	c := &Claim{configured: path, path: target, lock: &stateLock{path: target}}
	if now != nil && now.path == c.path {
		c.lock = now.lock // its file is this process's own
		return c, nil
	}
	err := c.lock.acquire()
	if _, locked := errors.AsType[*lockedError](err); locked {
		return nil, err
	}
	if err != nil {
		to.failed("the state file cannot be locked: retrying with each write", path, err)
	}
	if err := c.read(to); err != nil {
		c.lock.release()
		return nil, fmt.Errorf("state.path: %w", err)
	}
	return c, nil
}

func (c *Claim) read(to reporter) error {
	_, there := os.Stat(c.path)
	all, broken, err := readState(c.path)
	const useless = "the state file cannot be used: comparisons begin anew"
	switch {
	case err != nil:
		return err
	case broken != nil && c.lock.file == nil:
		to.failed(useless, c.configured, broken)
	case broken != nil:
		name, err := setAside(c.path)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", c.path, broken), err)
		}
		to.failed(useless+", and it is kept as "+name, c.configured, broken)
	case there != nil:
		to.log.Info("there is no state file yet: comparisons begin anew", "path", c.configured)
	}
	c.saved = all
	return nil
}

func (c *Claim) write(state stateFile) error {
	if err := c.lock.acquire(); err != nil {
		return err
	}
	if _, err := readText(c.path); err != nil {
		return err
	}
	return writeState(c.path, state)
}

// A reporter logs and counts failures of the state file.
type reporter struct {
	log    *slog.Logger
	errors prometheus.Counter // nil: not counted
}

func (r reporter) failed(what, path string, err error) {
	r.log.Error(what, "path", path, "err", err)
	r.count()
}

func (r reporter) count() {
	if r.errors != nil {
		r.errors.Inc()
	}
}
