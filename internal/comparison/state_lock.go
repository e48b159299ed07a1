package comparison

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"replayd/internal/file"
)

// A stateLock is the right to use a state file: a lock on the file beside it. The kernel frees it when the process
// ends, however it ends. The file stays: if it were removed, two processes could lock two files of that name.
type stateLock struct {
	path string   // of the state
	file *os.File // nil: not taken
}

const (
	lockSuffix = ".lock"
	lockStart  = "replayd: "
	lockBytes  = 512 // of the text in the file
)

// A lockedError says which process uses a state file.
type lockedError struct{ path, by string }

func (e *lockedError) Error() string {
	return fmt.Sprintf("state.path: %s: want a file that no other replayd uses, got that of %s", e.path, e.by)
}

// acquire takes the lock, without a wait.
func (l *stateLock) acquire() error {
	if l.file != nil {
		return nil
	}
	f, err := file.Create(l.path+lockSuffix, 0o600)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(f, lockBytes))
	if err == nil && len(text) > 0 && !bytes.HasPrefix(text, []byte(lockStart)) {
		err = fmt.Errorf("%s: want a lock file of replayd, or none, got another file", f.Name())
	}
	if err == nil {
		err = tryLock(f)
	}
	switch {
	case errors.Is(err, errLocked):
		by := strings.ToValidUTF8(strings.TrimSpace(strings.TrimPrefix(string(text), lockStart)), "")
		err = &lockedError{l.path, cmp.Or(by, "another process")}
	case err == nil:
		err = writeOwner(f)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file = f
	return nil
}

func writeOwner(f *os.File) error {
	host, err := os.Hostname()
	if err != nil {
		host = "a host without a name"
	}
	text := fmt.Sprintf(lockStart+"pid %d on %s since %s\n", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
	_, err = f.WriteAt([]byte(text), 0)
	return errors.Join(err, f.Truncate(int64(len(text))))
}

func (l *stateLock) release() {
	if l.file != nil {
		_ = l.file.Truncate(0) // nobody has it
		_ = l.file.Close()     // which frees it
		l.file = nil
	}
}
