package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// lines reads a file line by line and tracks the position of each line. It accepts CRLF and skips a byte order mark and
// blank lines.
type lines struct {
	in     *bufio.Reader
	end    int64  // offset of the byte after the last line read
	start  int64  // offset of the first byte of that line
	number int    // number of that line, from 1
	long   []byte // a line that does not fit into the reader's buffer
	limit  int    // most bytes of a line
	tabs   bool   // tabs separate cells: they are no blanks
}

var (
	errLongLine  = errors.New("line too long")
	errNoLineEnd = fmt.Errorf("row: want a line of at most %d bytes, got no end of it in %d", MaxLineBytes, maxUnendedBytes)
)

// newLines starts at byte offset, after number lines.
func newLines(in io.Reader, offset int64, number int) *lines {
	l := &lines{in: bufio.NewReaderSize(in, 64<<10), end: offset, number: number, limit: MaxLineBytes}
	if offset == 0 {
		mark := []byte("\xef\xbb\xbf")
		if head, _ := l.in.Peek(len(mark)); bytes.Equal(head, mark) { // an error recurs with the first line
			n, _ := l.in.Discard(len(mark))
			l.end = int64(n)
		}
	}
	return l
}

// next returns the next line that is not blank, without surrounding blanks. The line is valid until the next call.
// After errLongLine the caller can read on; any other error is final.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.raw()
		if err != nil {
			return nil, err
		}
		if line = trimmed(line, l.tabs); len(line) > 0 {
			return line, nil
		}
	}
}

// trimmed returns a line without blanks around it.
func trimmed(line []byte, tabs bool) []byte {
	short := bytes.TrimSpace(line)
	if tabs && len(short) > 0 {
		return bytes.Trim(line, " \r\n")
	}
	return short
}

func (l *lines) raw() ([]byte, error) {
	l.number++
	l.start = l.end
	line, err := l.in.ReadSlice('\n')
	l.end += int64(len(line))
	if errors.Is(err, bufio.ErrBufferFull) {
		l.long = append(l.long[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = l.in.ReadSlice('\n')
			l.end += int64(len(line))
			if len(l.long) <= l.limit {
				l.long = append(l.long, line...)
			}
			if l.end-l.start > maxUnendedBytes {
				return nil, errNoLineEnd
			}
		}
		line = l.long
	}
	if errors.Is(err, io.EOF) && len(line) > 0 { // the last line may lack a line end
		err = nil
	}
	if err == nil && len(line) > l.limit {
		err = errLongLine
	}
	return line, err
}
