package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxDocumentBytes is the most bytes of one session in a file of sessions.
const maxDocumentBytes = maxUnendedBytes

// documents calls each for every JSON object of a file: one a line, or a single one over several lines, which is line 0. text
// is valid during the call.
func documents(in io.Reader, each func(line int, text []byte) error) error {
	lines := newLines(in, 0, 0)
	lines.limit = maxDocumentBytes
	var whole []byte // of an object over several lines, so far
	for first := true; ; first = false {
		line, err := lines.next()
		switch {
		case errors.Is(err, io.EOF) && whole != nil:
			return each(0, whole)
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLongLine), errors.Is(err, errNoLineEnd),
			err == nil && whole != nil && len(whole)+len(line) >= maxDocumentBytes:
			return fmt.Errorf("session: want at most %d bytes, got more", maxDocumentBytes)
		case err != nil:
			return err
		case whole != nil, first && !bytes.HasSuffix(line, []byte("}")):
			whole = append(append(whole, line...), '\n')
		default:
			if err := each(lines.number, line); err != nil {
				return err
			}
		}
	}
}
