package schedule

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"replayd/internal/scalar"
	"replayd/internal/trace"
)

// open opens one of the public traces, which are not part of the project.
func open(t *testing.T, name string) *trace.File {
	t.Helper()
	dir := os.Getenv("REPLAYD_TRACES")
	if dir == "" {
		t.Skip("REPLAYD_TRACES is not set: no public traces here")
	}
	f, err := trace.Open(t.Context(), filepath.Join(dir, name), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// The expected values were published with the copy of the trace, or counted by other programs.
func TestMooncakeConversationTrace(t *testing.T) {
	src := FromFile(open(t, "mooncake_conversation.jsonl"))
	exact := plan(t, src, Options{Repeat: Repeat{Align: WallClock}})
	if got := exact.every; got != time.Hour {
		t.Errorf("every %v, want 1h", got)
	}
	l := exact.Loop(time.Time{}, epoch)
	all := dues(t, exact, l, l.Start)
	instants := map[time.Time]int{}
	tokens := 0
	for _, d := range all {
		instants[d.At]++
		tokens += d.InputTokens + d.OutputTokens
	}
	if len(all) != 12_031 || len(instants) != 1180 || all[12_030].At.Sub(l.Start) != 3_536_999*time.Millisecond {
		t.Errorf("%d rows at %d instants until %v, want 12031 at 1180 until 58m56.999s", len(all), len(instants), all[len(all)-1].At.Sub(l.Start))
	}

	// Shards by record number modulo N: tokens of the largest shard ÷ mean tokens of a shard.
	for of, want := range map[int]float64{2: 1.012, 4: 1.021, 8: 1.036} {
		largest, rows := 0, 0
		for i := range of {
			sum := 0
			for _, d := range dues(t, plan(t, src,
				Options{Repeat: Repeat{Align: WallClock}, Shard: Shard{scalar.Auto(i), of}}), l, l.Start) {
				sum += d.InputTokens + d.OutputTokens
				rows++
			}
			largest = max(largest, sum)
		}
		if got := float64(largest*of) / float64(tokens); rows != 12_031 || math.Abs(got-want) > 0.0005 {
			t.Errorf("%d shards: %d rows, largest over mean %.4f, want 12031, %.3f", of, rows, got, want)
		}
	}

	// A tick of 3 s has up to 28 rows. When they are spread, no two rows are due together, and none is 3 s late or
	// more.
	spread := dues(t, plan(t, src, Options{Pattern: Pattern{Arrival: Spread}, Repeat: Repeat{Align: WallClock}}), l, l.Start)
	for i, d := range spread {
		late := d.At.Sub(all[i].At)
		if d.Number != all[i].Number || late < 0 || late >= 3*time.Second || i > 0 && !d.At.After(spread[i-1].At) {
			t.Fatalf("row %d is due at %v, %v after its timestamp", d.Number, d.At.Sub(l.Start), late)
		}
	}

	// Joining in the middle of the loop, at each speed: the first row is the first one that is not due before then.
	for _, speed := range []float64{1, 20} {
		p := plan(t, src, Options{Pattern: Pattern{Speed: speed}, Repeat: Repeat{Align: Start}})
		l := p.Loop(epoch, epoch.Add(100*time.Second))
		tail := dues(t, p, l, epoch.Add(100*time.Second))
		missed := 0
		for _, d := range all {
			if float64(d.Offset)/speed < float64(100*time.Second) {
				missed++
			}
		}
		if len(tail) != len(all)-missed || tail[0].Number != all[missed].Number {
			t.Errorf("speed %v: %d rows from row %d, want %d from row %d", speed, len(tail), tail[0].Number, len(all)-missed, all[missed].Number)
		}
	}
}
