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
	for first := true; ; first = false {
		line, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLongLine), errors.Is(err, errNoLineEnd):
			return fmt.Errorf("session: want at most %d bytes, got more", maxDocumentBytes)
		case err != nil:
			return err
		}
		if first && !bytes.HasSuffix(line, []byte("}")) {
			return wholeDocument(line, lines, each)
		}
		if err := each(lines.number, line); err != nil {
			return err
		}
	}
}

func wholeDocument(first []byte, rest *lines, each func(line int, text []byte) error) error {
	text := append(bytes.Clone(first), '\n')
	for {
		line, err := rest.next()
		if errors.Is(err, io.EOF) {
			return each(0, text)
		}
		if err == nil && len(text)+len(line) >= maxDocumentBytes || errors.Is(err, errLongLine) || errors.Is(err, errNoLineEnd) {
			return fmt.Errorf("session: want at most %d bytes, got more", maxDocumentBytes)
		}
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
}
