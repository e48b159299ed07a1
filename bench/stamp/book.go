//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strconv"
)

// An entry is the record of a streamed answer. Times are ns of CLOCK_REALTIME since the Unix epoch.
type entry struct {
	id      string
	arrival int64   // kernel timestamp of the request's last segment; read if there is none
	read    int64   // after the read that ended the request
	chunks  []int64 // of each content chunk, just before its write
	end     int64   // after the last write; 0: the client left before
}

// A book keeps entries until the end of the program: an earlier write would take time from the answers.
type book struct {
	keep    bool
	entries []*entry
}

// open begins an entry.
func (b *book) open(id string, arrival, read int64, tokens int) *entry {
	e := &entry{id: id, arrival: arrival, read: read}
	if arrival == 0 {
		e.arrival = read
	}
	if b.keep {
		e.chunks = make([]int64, 0, tokens)
		b.entries = append(b.entries, e)
	}
	return e
}

func (e *entry) stamp(ns int64) {
	if cap(e.chunks) > 0 {
		e.chunks = append(e.chunks, ns)
	}
}

// write writes the file with a line per entry. Nobody may use the book at that time.
func (b *book) write(path string) (err error) {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	var line []byte
	for _, e := range b.entries {
		id, err := json.Marshal(e.id)
		if err != nil {
			return err
		}
		line = append(append(line[:0], `{"id":`...), id...)
		line = strconv.AppendInt(append(line, `,"arrival":`...), e.arrival, 10)
		line = strconv.AppendInt(append(line, `,"read":`...), e.read, 10)
		line = append(line, `,"chunks":[`...)
		for i, ns := range e.chunks {
			if i > 0 {
				line = append(line, ',')
			}
			line = strconv.AppendInt(line, ns, 10)
		}
		line = strconv.AppendInt(append(line, `],"end":`...), e.end, 10)
		if _, err := w.Write(append(line, "}\n"...)); err != nil {
			return err
		}
	}
	return w.Flush()
}
