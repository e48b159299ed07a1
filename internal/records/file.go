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

	"replayd/internal/file"
)

// Options configures the file of records.
type Options struct {
	// Path of the file, which is created or appended to. Empty: no records. If the path is not a regular file itself,
	// for instance a pipe, a device or a symbolic link, it is never rotated.
	Path string

	MaxBytes int64 // the file is rotated before it would exceed this size; 0: never. A longer record gets its own file
	Keep     int   // number of rotated files to keep, at least 0
	Gzip     bool  // compress rotated files
}

// sendPatience is the write timeout of a pipe. Records that the pipe does not accept in time are kept for the next
// write.
const sendPatience = time.Second

// The beginnings of a record and of a ledger; see Sink.
var (
	RecordStart = []byte(`{"id":`)
	LedgerStart = []byte(`{"ledger":`)
)

// A recordFile is a file of records, open for appending.
type recordFile struct {
	*os.File
	path    string
	info    fs.FileInfo
	regular bool  // the path itself is a regular file, which can be read, truncated and renamed
	size    int64 // bytes of a regular file
}

// openRecords opens a file for appending and repairs its last line. A pipe without a reader is an error.
func openRecords(path string) (*recordFile, error) {
	info, err := os.Lstat(path)
	regular := err == nil && info.Mode().IsRegular() || errors.Is(err, fs.ErrNotExist)
	access := os.O_WRONLY
	if regular {
		access = os.O_RDWR // mend reads the last line
	}
	f, err := os.OpenFile(path, access|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, file.Mode)
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

// mend ensures that the file ends with a newline. A killed process may have left a partial line: mend truncates a
// partial record or ledger, and ends any other line with a newline, because another program wrote it.
func (f *recordFile) mend() error {
	if !f.regular {
		return nil
	}
	at, whole, err := f.lastLine()
	if err != nil || at == f.size {
		return err
	}
	start := make([]byte, min(int64(len(LedgerStart)), f.size-at))
	if _, err := f.ReadAt(start, at); err != nil {
		return err
	}
	if whole && (begins(start, RecordStart) || begins(start, LedgerStart)) {
		f.size = at
		return f.Truncate(at)
	}
	n, err := f.Write([]byte{'\n'})
	f.size += int64(n)
	return err
}

// begins reports whether line and text agree over the length of the shorter one.
func begins(line, text []byte) bool {
	return bytes.HasPrefix(line, text) || bytes.HasPrefix(text, line)
}

// lastLine returns the offset after the last newline. It stops searching beyond the maximum length of a record; whole
// is then false, and the line begins earlier.
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

// inPlace reports whether the path still refers to the open file. It updates size, because another process may truncate
// the file.
func (f *recordFile) inPlace() bool {
	info, err := os.Stat(f.path)
	if err != nil || !os.SameFile(info, f.info) {
		return false
	}
	f.size = info.Size()
	return true
}

// append writes whole lines to a regular file. After an error it truncates the file to whole lines; if that fails too,
// openRecords repairs the file.
func (f *recordFile) append(lines []byte) (n int, err error) {
	n, err = f.Write(lines)
	if err != nil {
		written := n
		n = bytes.LastIndexByte(lines[:n], '\n') + 1
		if info, statErr := f.Stat(); statErr == nil && n < written && info.Size() == f.size+int64(written) {
			_ = f.Truncate(f.size + int64(n)) // the write error is returned
		}
	}
	f.size += int64(n)
	return n, err
}

// send writes to a pipe or a device for at most sendPatience. The error is os.ErrDeadlineExceeded if the reader is too
// slow.
func (f *recordFile) send(lines []byte) (n int, err error) {
	_ = f.SetWriteDeadline(time.Now().Add(sendPatience)) // most devices support no deadline, and need none
	return f.Write(lines)
}
