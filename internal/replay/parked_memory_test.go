package replay

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// waitingBytes is how much of the heap a request takes that waits for a lane, where n of them do. What a runner has of a row
// before it is due has been let go of then, as the feed and the builder do.
func waitingBytes(t *testing.T, n int, next func() trace.Record) float64 {
	t.Helper()
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	q, c := newQueue(0)
	q.waiting.near = nearRows
	l := q.loops[0]
	before := heap()
	for i := range n {
		due := schedule.Due{Record: next(), At: at(i), Loop: l.Loop}
		q.add(l, &item{due: due, seq: int64(i), id: "workload/" + due.ID(), weight: weigh(&due.Record)})
		q.fire(due.At)
	}
	after := heap()
	if c.waiting != n || q.waiting.len() != n {
		t.Fatalf("want %d waiting, got %d and %d in the line", n, c.waiting, q.waiting.len())
	}
	return (float64(after) - float64(before)) / float64(n)
}

// mostWaitingBytes is the bound that docs/limits.md gives.
const mostWaitingBytes = 100

// A request that waits for a lane takes 100 bytes at most: with lengths alone, and with the blocks of a long prompt.
func TestAWaitingRequestIsSmall(t *testing.T) {
	for name, blocks := range map[string]int{"lengths alone": 0, "24 blocks, 20 of them new": 24} {
		number, fresh := 0, uint64(0)
		got := waitingBytes(t, 100_000, func() trace.Record {
			rec := trace.Record{
				Number: number, Line: number + 1, Offset: time.Duration(number) * 300 * time.Millisecond,
				InputTokens: 12_000, OutputTokens: 343,
			}
			number++
			for id := range uint64(blocks) {
				if id > 3 {
					fresh++
					id = fresh
				}
				rec.Blocks = append(rec.Blocks, id)
			}
			return rec
		})
		t.Logf("%s: %.1f bytes", name, got)
		if got > mostWaitingBytes {
			t.Errorf("%s: want at most %d bytes a waiting request, got %.1f", name, mostWaitingBytes, got)
		}
	}
}

// So do the rows of a real trace.
func TestAWaitingRowOfARealTraceIsSmall(t *testing.T) {
	dir := os.Getenv("REPLAYD_TRACES")
	if dir == "" {
		t.Skip("REPLAYD_TRACES does not name the folder of the traces")
	}
	for _, name := range []string{"mooncake_conversation.jsonl", "azure_2023_conv.csv"} {
		f, err := trace.Open(t.Context(), filepath.Join(dir, name), trace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		var rows *trace.Rows
		got := waitingBytes(t, 100_000, func() trace.Record {
			for {
				if rows == nil {
					if rows, err = f.Rows(0); err != nil {
						t.Fatal(err)
					}
				}
				rec, err := rows.Next()
				if err == nil {
					return rec
				}
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				rows = nil // it comes round again
			}
		})
		t.Logf("%s: %.1f bytes", name, got)
		if got > mostWaitingBytes {
			t.Errorf("%s: want at most %d bytes a waiting request, got %.1f", name, mostWaitingBytes, got)
		}
	}
}

// To be parked and made whole again costs a request the item, its blocks and little else.
func TestParkingAllocatesLittle(t *testing.T) {
	it := planned(0, 0, "", 0)
	it.body, it.loop, it.ready, it.planned = nil, &loop{}, at(0), at(0)
	it.due.Blocks = make([]uint64, 24)
	var p parked
	for range 100 { // so that there is space
		p.add(it)
	}
	if got := testing.AllocsPerRun(1000, func() { p.add(it); p.take(true) }); got > 2.1 {
		t.Errorf("want an item and its blocks to be allocated, got %v allocations", got)
	}
}
