package records

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Options say where records go.
type Options struct {
	// Path of the file. It is appended to, and made if it is not there. Empty: no records. What is not a regular file
	// itself, such as a pipe, a device or a symbolic link, is written and never rotated.
	Path string

	MaxBytes int64 // the file is rotated before a record would make it longer; 0: never. A longer record has a file of its own
	Keep     int   // old files that stay, at least 0; the others are removed at a rotation
	Gzip     bool  // old files are compressed
}

// sendPatience is how long a pipe may take to make room for some records before they wait for the next time.
const sendPatience = time.Second

// Each record begins with the one, each ledger with the other.
var (
	recordStart = []byte(`{"id":`)
	ledgerStart = []byte(`{"ledger":`)
)

// A recordFile is a file of records, open for appending.
type recordFile struct {
	*os.File
	path    string
	info    fs.FileInfo
	regular bool  // the path itself is a regular file: it may be read, cut and renamed
	size    int64 // of a regular file, bytes
}

// openRecords opens a file for appending, with its last line whole. The path of a pipe without a reader is an error.
func openRecords(path string) (*recordFile, error) {
	info, err := os.Lstat(path)
	regular := err == nil && info.Mode().IsRegular() || errors.Is(err, fs.ErrNotExist)
	access := os.O_WRONLY
	if regular {
		access = os.O_RDWR // the last line is read
	}
	f, err := os.OpenFile(path, access|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o644)
	if errors.Is(err, syscall.ENXIO) {
		return nil, fmt.Errorf("%w (a socket, or a pipe that nobody reads)", err)
	}
	if err != nil {
		return nil, err
	}
	r := &recordFile{File: f, path: path, regular: regular}
	if r.info, err = f.Stat(); err == nil && regular {
		r.regular, r.size = r.info.Mode().IsRegular(), r.info.Size()
		err = r.mend()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

// mend sees to it that the file ends with a newline. A process that was killed may have left the beginning of a line of ours:
// that is cut off. Anything else is not ours to destroy and becomes a line of its own.
func (f *recordFile) mend() error {
	if !f.regular {
		return nil
	}
	at, whole, err := f.lastLine()
	if err != nil || at == f.size {
		return err
	}
	start := make([]byte, min(int64(len(ledgerStart)), f.size-at))
	if _, err := f.ReadAt(start, at); err != nil {
		return err
	}
	if whole && (begins(start, recordStart) || begins(start, ledgerStart)) {
		f.size = at
		return f.Truncate(at)
	}
	n, err := f.Write([]byte{'\n'})
	f.size += int64(n)
	return err
}

// begins says whether a line begins with a text, as far as there is of both.
func begins(line, text []byte) bool {
	n := min(len(line), len(text))
	return bytes.Equal(line[:n], text[:n])
}

// lastLine is the offset of what stands after the last newline. When that is longer than any record it looks no further,
// and the line begins earlier.
func (f *recordFile) lastLine() (at int64, whole bool, err error) {
	block := make([]byte, 64<<10)
	for at = f.size; at > 0 && f.size-at < sinkBound; at -= int64(len(block)) {
		block = block[:min(int64(len(block)), at)]
		if _, err := f.ReadAt(block, at-int64(len(block))); err != nil && !errors.Is(err, io.EOF) {
			return 0, false, err
		}
		if i := bytes.LastIndexByte(block, '\n'); i >= 0 {
			return at - int64(len(block)) + int64(i) + 1, true, nil
		}
	}
	return at, at == 0, nil
}

// inPlace says whether the path still has the open file, and looks how long that is: another process may truncate it.
func (f *recordFile) inPlace() bool {
	info, err := os.Stat(f.path)
	if err != nil || !os.SameFile(info, f.info) {
		return false
	}
	f.size = info.Size()
	return true
}

// append writes whole lines to a regular file. After an error only whole ones of them are there, unless the file cannot even
// be cut; then openRecords does that.
func (f *recordFile) append(lines []byte) (n int, err error) {
	n, err = f.Write(lines)
	if err != nil {
		written := n
		n = bytes.LastIndexByte(lines[:n], '\n') + 1
		if info, statErr := f.Stat(); statErr == nil && n < written && info.Size() == f.size+int64(written) {
			_ = f.Truncate(f.size + int64(n)) // err is what matters
		}
	}
	f.size += int64(n)
	return n, err
}

// send writes to a pipe or a device for a while. The error is os.ErrDeadlineExceeded when the other side does not read on.
func (f *recordFile) send(lines []byte) (n int, err error) {
	_ = f.SetWriteDeadline(time.Now().Add(sendPatience)) // most devices have none, and need none
	return f.Write(lines)
}
