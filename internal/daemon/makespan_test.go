package daemon

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/sim"
	"replayd/internal/trace"

	"replayd/test/outside"
)

// The requests of sessions end at the nanosecond that a model of the graph and of the engine predicts, so the makespans do too: with made-up
// graphs, and with the public sessions one by one. Prompts take a fixed time each, or they are computed one after the other, with a cache.
func TestMakespans(t *testing.T) {
	fixed := sim.Defaults()
	fixed.TTFT, fixed.ITL, fixed.ChunkTokens = 5*time.Millisecond, 200*time.Microsecond, 64
	fixed.Slots, fixed.MaxModelLen, fixed.TemplateTokens, fixed.BlockTokens, fixed.CacheTokens = 1024, 400_000, 0, 64, 1<<30
	serial := fixed
	serial.TTFT, serial.PrefillRate = 0, 30_000

	type play struct {
		path    string
		engines map[string]sim.Options
	}
	both := map[string]sim.Options{"fixed": fixed, "serial": serial}
	var plays []play
	seeds, least := uint64(20), 30
	if testing.Short() {
		seeds, least = 6, 8
	}
	for seed := range seeds {
		plays = append(plays, play{write(t, fmt.Sprintf("made up %d.jsonl", seed), madeSession(rand.New(rand.NewPCG(seed, 0)))), both})
	}
	if folder := os.Getenv("REPLAYD_TRACES"); folder != "" && !testing.Short() {
		public, _ := filepath.Glob(filepath.Join(folder, "weka", "*.json"))
		for _, path := range public {
			plays = append(plays, play{path, map[string]sim.Options{"serial": serial}})
		}
		if len(public) > 0 { // all at once
			plays = append(plays, play{filepath.Join(folder, "weka"), map[string]sim.Options{"fixed": fixed}})
		}
	}
	exact := 0
	for _, p := range plays {
		path := p.path
		for name, engine := range p.engines {
			t.Run(name+" "+filepath.Base(path), func(t *testing.T) {
				const maxWait = 300 * time.Millisecond
				rows := recorded(t, path)
				want, tied := predict(rows, engine, maxWait)
				if tied { // two requests arrive at one instant, and the engine may compute either first
					return
				}
				exact++
				start, got := playSessions(t, path, engine, maxWait)
				if len(got) != len(rows) {
					t.Fatalf("want %d requests, got %d", len(rows), len(got))
				}
				for _, r := range got {
					if end := r.Timeline.End.Sub(start); end != want[r.Row] || r.Outcome != measure.OK {
						t.Errorf("row %d: want it ok and ended after %v, got %s after %v", r.Row, want[r.Row], r.Outcome, end)
					}
				}
				t.Logf("makespan of %d rows: %v", len(rows), slices.Max(want))
			})
		}
	}
	if exact < least {
		t.Errorf("want at least %d sessions without ties, got %d", least, exact)
	}
}

// madeSession returns a session of up to 60 rows, each after one to three of the latest rows, with waits of random nanoseconds.
func madeSession(dice *rand.Rand) string {
	const block = 64
	var text strings.Builder
	text.WriteString(`{"schema":"replayd.sessions.v1","block_size":64}` + "\n")
	fresh, blocks := 0, [][]string{}
	for row := range 20 + dice.IntN(40) {
		var after, ids []string
		if row > 0 {
			parents := map[int]bool{}
			for range 1 + dice.IntN(3) {
				parents[max(0, row-1-dice.IntN(5))] = true
			}
			for parent := range parents {
				after = append(after, fmt.Sprintf(`{"row":%d,"wait":%d.%06d}`, parent, dice.IntN(320), dice.IntN(1_000_000)))
				if from := blocks[parent]; len(from) > len(ids) {
					ids = slices.Clone(from)
				}
			}
			slices.Sort(after)
		}
		for range 1 + dice.IntN(20) {
			ids = append(ids, strconv.Itoa(fresh))
			fresh++
		}
		blocks = append(blocks, ids)
		at := ""
		if row == 0 || dice.IntN(8) == 0 { // an instant of its own
			at = fmt.Sprintf(`,"timestamp":%d.%06d`, row*500, row*7919)
		}
		fmt.Fprintf(&text, `{"row":%d,"after":[%s]%s,"input_length":%d,"output_length":%d,"hash_ids":[%s],"session_id":"s"}`+"\n",
			row, strings.Join(after, ","), at, block*len(ids)+dice.IntN(block), 1+dice.IntN(200), strings.Join(ids, ","))
	}
	return text.String()
}

// recorded returns the rows of a trace by number.
func recorded(t *testing.T, path string) []trace.Record {
	t.Helper()
	f, err := trace.Open(t.Context(), path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := make([]trace.Record, f.Stats.Requests)
	if err := f.Each(t.Context(), func(r *trace.Record) {
		rows[r.Number] = *r
		rows[r.Number].Blocks = slices.Clone(r.Blocks)
	}); err != nil {
		t.Fatal(err)
	}
	return rows
}

// playSessions plays a trace once against an engine, in virtual time, and returns when its plan began and its requests.
func playSessions(t *testing.T, path string, engine sim.Options, maxWait time.Duration) (start time.Time,
	all []measure.Request,
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, err := sim.New(engine)
		if err != nil {
			t.Fatal(err)
		}
		wire, server := outside.NewPipes(), e.Server()
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(wire) })
		w := once("w", "sim", path)
		w.TurnDelay.Max, w.Lanes, w.MaxWait, w.Prompt.Calibrate = maxWait, 1024, 0, false
		seen := &ended{}
		o := (&heard{}).options(conf([]config.Target{target("sim", "http://sim")}, w))
		o.Dial, o.Sleeper, o.Observers = wire.Dial, func() replay.Sleeper { return replay.NewTimers() }, []replay.Observer{seen}
		g, err := Build(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		g.Start(t.Context(), t.Context())
		_ = g.outlast(t.Context())
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		all = seen.all
		_ = server.Close()
		serving.Wait()
		<-time.After(time.Second) // net/http waits a moment before it closes a connection
	})
	for _, r := range all {
		if r.Row == 0 {
			start = r.Timeline.Due // the first row is due when the plan begins
		}
	}
	return start, all
}

// ended collects requests.
type ended struct {
	mu  sync.Mutex
	all []measure.Request
}

// Observe implements replay.Observer.
func (e *ended) Observe(r *measure.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, *r)
}
