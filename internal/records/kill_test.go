package records

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/measure"
)

const firstLoop = 10_000_000 // all loop numbers have the same number of digits

// killedLedger is a ledger, of which many are written among the records.
var killedLedger = `{"ledger":{"workload":"` + strings.Repeat("w", 4000) + `"}}` + "\n"

// looped returns a record of loop n.
func looped(n int) []byte {
	return appendRecord(nil, &measure.Request{ID: "w/0/0", Loop: int64(n), Outcome: measure.OK})
}

// loops returns the first and the last loop in the files; the loops between them must be complete.
func loops(t *testing.T, path string) (first, last int) {
	t.Helper()
	all := records(t, path)
	all = slices.DeleteFunc(all, func(line string) bool { return line == killedLedger })
	if len(all) == 0 {
		return firstLoop, firstLoop - 1
	}
	if _, err := fmt.Sscanf(all[0], `{"id":"w/0/0","loop":%d,`, &first); err != nil {
		t.Fatalf("%v: %q", err, all[0])
	}
	before, after, _ := strings.Cut(string(looped(first)), fmt.Sprint(first))
	for i, r := range all {
		if want := fmt.Sprint(before, first+i, after); r != want {
			t.Fatalf("record %d of %d, the first is number %d:\n%s want\n%s", i, len(all), first, r, want)
		}
	}
	return first, first + len(all) - 1
}

// A writing process is killed at random times. Each time the records on disk are whole and without a gap, and the next
// process continues after the last one.
func TestKilledAtAnyInstant(t *testing.T) {
	const variable = "REPLAYD_TEST_RECORDS"
	o := Options{Path: os.Getenv(variable), MaxBytes: 8 << 20, Keep: 2, Gzip: true}
	if o.Path != "" {
		writeUntilKilled(t, o)
	}
	o.Path = filepath.Join(t.TempDir(), "r.jsonl")
	rnd := rand.New(rand.NewPCG(1, 2))
	torn, parts, last := 0, 0, 0
	kills := 20
	if testing.Short() {
		kills = 5
	}
	for kill := range kills {
		c := exec.Command(os.Args[0], "-test.run=^TestKilledAtAnyInstant$")
		c.Env = append(os.Environ(), variable+"="+o.Path)
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		var written int
		said := bufio.NewReader(out)
		if _, err := fmt.Fscanln(said, &written); err != nil { // the process has started to write
			t.Error(err)
		}
		<-time.After(time.Duration(rnd.Int64N(int64(40 * time.Millisecond)))) // real time; any delay is valid
		if err := c.Process.Kill(); err != nil {
			t.Error(err)
		}
		rest, _ := io.ReadAll(said) // the pipe closes with the process
		if err := c.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Fatalf("want it killed, got %v: %s", err, rest)
		}
		if end := content(t, o.Path); end != "" && end[len(end)-1] != '\n' {
			torn++
		}
		if exists(o.Path + compressed + ".tmp") {
			parts++
		}
		s := newHeardSink()
		s.use(t, o) // mends the file
		s.close()
		if _, last = loops(t, o.Path); last < written {
			t.Errorf("kill %d: the last is %d, want at least %d, which was written before", kill, last, written)
		}
	}
	t.Logf("%d records; of %d kills %d cut a record and %d a compression", last-firstLoop+1, kills, torn, parts)
}

// writeUntilKilled does not return. It reuses the lines of a batch with new numbers, so that most of its time is spent
// in write calls.
func writeUntilKilled(t *testing.T, o Options) {
	s := NewSink(lostCounter(), slog.New(slog.NewTextHandler(os.Stderr, nil)))
	ledgers := []byte(strings.Repeat(killedLedger, 100))
	s.Ledgers = func(b []byte) []byte { return append(b, ledgers...) }
	if err := s.Use(o); err != nil {
		t.Fatal(err)
	}
	_, n := loops(t, o.Path)
	go s.compress(context.Background()) // started here, because compression renames the files that loops reads
	length := len(looped(firstLoop))
	at := strings.Index(string(looped(firstLoop)), fmt.Sprint(firstLoop))
	batch := []byte(strings.Repeat(string(looped(firstLoop)), 3<<20/length))
	for said := false; ; said = true {
		count := 1 + rand.IntN(len(batch)/length)
		for i := range count {
			n++
			copy(batch[i*length+at:], fmt.Append(nil, n))
		}
		s.mu.Lock()
		s.pending = append(s.pending, batch[:count*length]...)
		s.mu.Unlock()
		s.WriteLedgers()
		s.flush()
		if !said {
			fmt.Println(n)
		}
		if s.losses.Load() > 0 {
			t.Fatal("want all records written")
		}
	}
}
