package records

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"
)

const sinkRetry = 5 * time.Second // pause before a failed file is opened again

// fillBatch moves pending to the batch if the batch is empty, and sets the state for later records.
func (s *Sink) fillBatch(state int32) {
	s.mu.Lock()
	s.state.Store(state)
	over := s.over
	s.over = false
	if len(s.batch) == 0 {
		if cap(s.spare) > sinkSpare {
			s.spare = nil
		}
		s.pending, s.spare, s.batch = s.spare[:0], s.pending, s.pending
		s.writing.Store(int64(len(s.batch)))
	}
	s.mu.Unlock() // before the log is written
	if over {
		s.failure.report(tooSlow(s.options.Path))
	}
}

// drain writes all observed records, closes the file and sets the state for later records.
func (s *Sink) drain(state int32) {
	s.retry = time.Time{}
	s.write()
	s.giveUp()
	s.fillBatch(state)
	s.write()
	s.giveUp()
	s.close()
}

// giveUp drops the records that a pipe has not accepted.
func (s *Sink) giveUp() {
	if len(s.batch) == 0 {
		return
	}
	s.err = tooSlow(s.options.Path)
	s.failure.report(s.err)
	s.drop()
}

// drop drops the rest of the batch. A line that was written only in part counts as lost.
func (s *Sink) drop() {
	s.lose(recordsOf(s.batch))
	s.batch = nil
	s.writing.Store(0)
	s.torn = s.torn || s.cut
	s.cut = false
}

// recordsOf counts the lines that are not ledgers.
func recordsOf(lines []byte) int {
	return bytes.Count(lines, []byte{'\n'}) - bytes.Count(lines, LedgerStart)
}

func (s *Sink) lose(records int) {
	s.lost.Add(float64(records))
	s.losses.Add(uint64(records))
}

// write appends the batch to the file. On a failure the batch is lost; records that a pipe does not accept in time stay
// in the batch.
func (s *Sink) write() {
	if s.options.Path == "" {
		return
	}
	if !s.ready() {
		s.drop()
		return
	}
	if len(s.batch) == 0 {
		return
	}
	for len(s.batch) > 0 {
		s.writeHead()
		n, err := s.writeSome()
		s.batch = s.batch[n:]
		s.writing.Store(int64(len(s.batch)))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil {
			s.failure.report(s.fail(err))
			s.drop()
			return
		}
	}
	s.err = nil
	s.failure.written(s.options.Path, s.losses.Load())
}

// writeHead puts ledgers before the first record of a newly opened file.
func (s *Sink) writeHead() {
	if s.headed || s.Ledgers == nil || s.cut {
		return
	}
	s.headed = true
	lines := s.Ledgers(nil)
	if s.file.size == 0 {
		s.head = int64(len(lines))
	}
	s.batch = append(lines, s.batch...)
	s.writing.Store(int64(len(s.batch)))
}

// writeSome writes the lines that fit into the file, or rotates the file if none fits.
func (s *Sink) writeSome() (n int, err error) {
	if !s.file.regular {
		return s.send()
	}
	lines := s.batch
	if most := s.options.MaxBytes; most > 0 && s.file.size+int64(len(lines)) > most {
		room := max(most-s.file.size, 0) // less than len(lines)
		lines = lines[:bytes.LastIndexByte(lines[:room], '\n')+1]
		if len(lines) == 0 && s.file.size > s.head {
			return 0, s.rotate()
		}
		if len(lines) == 0 { // a longer record gets its own file
			lines = s.batch[:bytes.IndexByte(s.batch, '\n')+1]
		}
	}
	return s.file.append(lines)
}

// send writes to a pipe or a device. It first ends a line that was dropped halfway.
func (s *Sink) send() (n int, err error) {
	if s.torn {
		if _, err := s.file.send([]byte{'\n'}); err != nil {
			return 0, err
		}
		s.torn = false
	}
	n, err = s.file.send(s.batch)
	if n > 0 {
		s.cut = s.batch[n-1] != '\n'
	}
	return n, err
}

func (s *Sink) rotate() (err error) {
	s.close()
	if err := shift(s.options.Path, s.options.Keep); err != nil {
		return err
	}
	wake(s.rotated)
	return s.openFile()
}

// ready opens the file if it is not open, or if another program has rotated or removed it.
func (s *Sink) ready() bool {
	if s.file != nil && s.file.inPlace() {
		return true
	}
	if s.file == nil && time.Now().Before(s.retry) {
		return false
	}
	err := s.open()
	if err != nil {
		s.failure.report(err)
	}
	return err == nil
}

func (s *Sink) open() error {
	s.close()
	if err := s.openFile(); err != nil {
		return s.fail(err)
	}
	return nil
}

func (s *Sink) openFile() (err error) {
	s.headed, s.head = false, 0
	s.file, err = openRecords(s.options.Path)
	return err
}

// fail closes the file and sets the time of the next try.
func (s *Sink) fail(err error) error {
	s.close()
	s.retry = time.Now().Add(sinkRetry)
	s.err = fmt.Errorf("records: %w", err)
	return s.err
}

func (s *Sink) close() {
	if s.file != nil {
		s.file.Close() // nothing is left to write, so ignore the error
		s.file = nil
	}
}
