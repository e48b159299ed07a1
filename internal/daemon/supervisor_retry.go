package daemon

import (
	"fmt"
	"os"
	"strings"
	"time"

	"replayd/internal/config"
)

// Pauses between two tries of a reload that failed.
const (
	retryFirst = 15 * time.Second
	retryMost  = 5 * time.Minute
)

// A retry is a reload that failed for want of something outside the configuration, such as a trace on a volume that is not there yet. It
// is tried again when one of the files that it names changes, and from time to time. The zero value is none.
type retry struct {
	pause time.Duration // before the next try; 0: there is none
	at    time.Time     // of the next try
	files []config.NamedFile
	seen  string // how the files were
	said  string // the error
}

func (r *retry) failed(c config.Config, err error) {
	*r = retry{pause: min(max(retryFirst, 2*r.pause), retryMost), files: awaited(c), said: err.Error()}
	r.seen, r.at = states(r.files), time.Now().Add(r.pause)
}

// due reports whether it is time to try again. It only asks for the state of files.
func (r *retry) due() bool {
	return r.pause > 0 && (!time.Now().Before(r.at) || states(r.files) != r.seen)
}

// awaited returns the files that are watched for a change after a failed reload: the configuration, the traces and the tokenizers. Files
// that replayd writes and files with secrets are not among them.
func awaited(c config.Config) (files []config.NamedFile) {
	for _, f := range c.Files() {
		rows := strings.HasSuffix(f.Key, ".trace.path") || strings.HasSuffix(f.Key, ".dataset.path")
		if f.Key == "" || rows || strings.HasSuffix(f.Key, ".tokenizer") {
			files = append(files, f)
		}
	}
	return files
}

// states describes files so that another description means that one has changed, is there or is gone.
func states(files []config.NamedFile) string {
	var text strings.Builder
	for _, f := range files {
		if info, err := os.Stat(f.Path); err != nil {
			fmt.Fprintln(&text, "none")
		} else {
			fmt.Fprintln(&text, info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
	}
	return text.String()
}
