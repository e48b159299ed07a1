package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
)

// held returns the bytes of the heap that are in use.
func held() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what the first one only marked
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// madeUp is a file of many sessions of three requests, which is made as it is read. It keeps the most bytes that the heap held.
type madeUp struct {
	line           func(session int) string
	sessions, made int
	buffer         bytes.Buffer
	most           int64
}

func (m *madeUp) Read(p []byte) (int, error) {
	for ; m.buffer.Len() < len(p) && m.made < m.sessions; m.made++ {
		if m.made%(m.sessions/10) == 0 {
			m.most = max(m.most, held())
		}
		m.buffer.WriteString(m.line(m.made))
	}
	n, err := m.buffer.Read(p)
	if n == 0 && m.made == m.sessions {
		return 0, io.EOF
	}
	return n, errors.Join(err)
}

// A hundred thousand sessions of three rows are read in bounded memory: what stays is some bytes a row, a session and a block.
func TestMemoryOfManySessions(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures memory, which needs all of the sessions")
	}
	line := func(session int) string {
		return fmt.Sprintf(`{"id":"session %d","block_size":64,"requests":[`+
			`{"t":0,"type":"n","in":130,"out":5,"hash_ids":[1,2],"api_time":2},`+
			`{"t":5,"type":"subagent","agent_id":"a","requests":[{"t":0,"type":"n","in":70,"out":5,"hash_ids":[3]}]},`+
			`{"t":%d.5,"type":"n","in":200,"out":5,"hash_ids":[1,2,4],"api_time":3}]}`+"\n", session, 9+session%3600)
	}
	const sessions = 100_000
	source := &madeUp{sessions: sessions, line: line}
	before := held()
	o := Options{}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	l, err := newLowering(Weka, &o)
	if err != nil {
		t.Fatal(err)
	}
	read := l.reader()
	if err := read(t.Context(), "made up", source); err != nil {
		t.Fatal(err)
	}
	during := source.most - before
	f := &File{name: "made up"}
	if err := f.replace(t.Context(), l, &o, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.check(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	l, read = nil, nil //nolint:ineffassign,wastedassign // lets the collector free it
	open := held() - before
	rows := 0
	if err := f.Each(t.Context(), func(*Record) { rows++ }); err != nil || rows != 3*sessions || f.Stats.Sessions != sessions {
		t.Errorf("want %d rows, got %d, %v", 3*sessions, rows, err)
	}
	t.Logf("%d MiB of heap while sessions are read, %d MiB while the trace is open", during>>20, open>>20)
	if during > 64<<20 || open > 48<<20 {
		t.Errorf("want at most 64 and 48 MiB of heap, got %d and %d", during>>20, open>>20)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
