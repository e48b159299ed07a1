//go:build between

package between_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/test/outside"
)

const (
	tokens    = 5
	firstWait = 260 * time.Millisecond
	tokenGap  = 50 * time.Millisecond
	length    = 15 * time.Second
	rounding  = int64(time.Millisecond) // of the clock that stamps for replayd and of the one that stamps for the engine
)

// poisson draws instants at 4 rows/s.
func poisson(seed uint64) (due []time.Duration) {
	draw := rand.New(rand.NewPCG(seed, 1))
	for at := 0.0; at < length.Seconds(); at -= math.Log(1-draw.Float64()) / 4 {
		due = append(due, time.Duration(at*1e9))
	}
	return due
}

// trace writes rows that are due at these instants.
func trace(due []time.Duration) string {
	var b strings.Builder
	for _, at := range due {
		fmt.Fprintf(&b, `{"timestamp": %.3f, "input_length": 20, "output_length": %d}`+"\n", at.Seconds()*1e3, tokens)
	}
	return b.String()
}

// A play is a program with its engine, and two clients that play the same rows one after the other.
type play struct {
	name, version string
	engine        *engine
	address       string // that the clients speak to

	replayd         *played
	client          client
	open            [2]*connections // replayd's and the client's
	unused          [2]int          // connections that carried no request, as the engine counts them
	direct          bool
	sampler         *sampler
	atFirst, atLast [2]lab.Sample // ms from the engine's stamp to the client's
}

// TestTable plays the same rows through every program, first with replayd and then with an independent client. What the
// table shows of the two side by side is the difference that replayd makes.
func TestTable(t *testing.T) {
	steal := lab.WatchSteal(outside.StealTime)
	t.Cleanup(steal.Stop)
	programs, watch := install(t), newSampler(t)
	due := poisson(1)
	for range 20 {
		due = append(due, length/2)
	}
	slices.Sort(due)

	direct := &play{name: "none", direct: true, engine: newEngine(t, stream(firstWait, tokenGap, tokens)), sampler: watch}
	direct.address = direct.engine.address()
	plays := []*play{direct}
	for _, c := range usual {
		e := newEngine(t, stream(firstWait, tokenGap, tokens))
		b := start(t, programs, c, e)
		plays = append(plays, &play{
			name: c.name, version: programs[c.program].version, engine: e, address: b.address, sampler: watch,
		})
	}
	for _, p := range plays {
		p.begin(t, due)
	}
	for _, p := range plays {
		p.end(t)
	}
	for _, p := range plays {
		p.beginClient(t, due)
	}
	for _, p := range plays {
		p.endClient(t)
	}
	table := &lab.Table{
		Title: fmt.Sprintf("%d rows, a Poisson of 4 rows/s over %v and 20 at once in its middle; answers of %d tokens "+
			"in %v. Chunks: median ms from the engine's stamp to the arrival. Connections: as the kernel lists them.",
			len(due), length, tokens, firstWait+(tokens-1)*tokenGap),
		Head: []string{
			"between", "version", "client", "at the engine", "ids twice", "outcomes", "TPOT not judged",
			"first chunk", "last chunk", "open", "most", "opened", "never used",
		},
	}
	table.Note("The client runs in the process of the engines, so both are later at their own work than replayd is.")
	for _, p := range plays {
		p.judge(t, len(due))
		p.show(t, table)
	}
	t.Logf("\n%s", table)
	if dir := os.Getenv("RESULTS"); dir != "" {
		if err := lab.WriteResults(dir, "between", steal, table); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *play) begin(t *testing.T, due []time.Duration) {
	t.Helper()
	p.engine.unusedConnections()
	p.open[0] = p.sampler.watch(p.address)
	// No answer keeps the bound on TPOT. Where one might, replayd does not judge it.
	p.replayd = begin(t, "http://"+p.address, trace(due), "--name", "replayd", "--goodput", "tpot:1ms")
}

func (p *play) end(t *testing.T) {
	t.Helper()
	p.replayd.end(t)
	p.sampler.leave(p.address)
	p.unused[0] = p.engine.unusedConnections()
}

func (p *play) beginClient(t *testing.T, due []time.Duration) {
	t.Helper()
	p.open[1] = p.sampler.watch(p.address)
	p.client.play(t, "http://"+p.address, due)
}

func (p *play) endClient(t *testing.T) {
	t.Helper()
	p.client.playing.Wait()
	p.sampler.leave(p.address)
	p.unused[1] = p.engine.unusedConnections()
}

// judge holds the two clients to what the engine saw.
func (p *play) judge(t *testing.T, rows int) {
	t.Helper()
	fault := func(format string, args ...any) { t.Errorf("%s: %s", p.name, fmt.Sprintf(format, args...)) }
	if p.replayd.code != 0 {
		fault("want exit code 0, got %d: %s", p.replayd.code, p.replayd.Said(t))
	}
	seen, mine := p.engine.seen("replayd"), p.engine.seen("client")
	if sent := rows - p.replayd.missed(); len(seen) != sent || len(p.replayd.records) != sent {
		fault("want %d rows at the engine and as many records, got %d and %d", sent, len(seen), len(p.replayd.records))
	}
	for _, r := range p.replayd.records {
		calls := seen[r.ID]
		if n := len(calls); n != 1 && (n != 2 || !r.Retried) {
			fault("%s: want it once at the engine, got %d times, retried: %v", r.ID, n, r.Retried)
			continue
		}
		if r.Outcome != "ok" || r.Tokens != tokens || r.Finish != "length" {
			fault("%s: want ok with %d tokens, got %s (%s), %d, %q", r.ID, tokens, r.Outcome, r.Error, r.Tokens, r.Finish)
			continue
		}
		c := calls[len(calls)-1]
		order := []int64{r.Write, c.arrived, c.first.Load(), r.First, r.Last, r.End}
		for i := range order[1:] {
			if order[i] > order[i+1]+rounding {
				fault("%s: want write, engine's arrival and first stamp, first and last token, end in order, got %v", r.ID, order)
			}
		}
		if last := c.done.Load(); last > r.End+rounding {
			fault("%s: ended %d ns before the engine wrote its end", r.ID, last-r.End)
		}
		p.note(0, c, r.First, r.Last)
	}
	for _, r := range p.client.results {
		calls := mine[r.id]
		if len(calls) != 1 || r.outcome != "ok" || r.tokens != tokens || r.finish != "length" {
			fault("%s: want it once at the engine, and ok with %d tokens, got %d times, %q, %d, %q",
				r.id, tokens, len(calls), r.outcome, r.tokens, r.finish)
			continue
		}
		p.note(1, calls[0], r.first, r.last)
	}
}

// note keeps how long after their stamps the chunks have arrived.
func (p *play) note(who int, c *call, first, last int64) {
	p.atFirst[who] = append(p.atFirst[who], float64(first-c.first.Load())/1e6)
	p.atLast[who] = append(p.atLast[who], float64(last-c.last.Load())/1e6)
}

var notJudged = regexp.MustCompile(`(?m)^not judged +(\d+ of \d+)`)

// show adds the rows of the two clients.
func (p *play) show(t *testing.T, table *lab.Table) {
	t.Helper()
	hidden := "0"
	if m := notJudged.FindStringSubmatch(p.replayd.Said(t)); m != nil {
		hidden = m[1]
	}
	for who, name := range []string{"replayd", "client"} {
		seen, outcomes := p.engine.seen(name), p.client.outcomes()
		if who == 0 {
			outcomes = p.replayd.outcomes()
		}
		all, twice := 0, 0
		for _, calls := range seen {
			all += len(calls)
			twice += min(1, len(calls)-1)
		}
		unused := "–"
		if p.direct {
			unused = fmt.Sprint(p.unused[who])
		}
		table.Add(p.name, p.version, name, fmt.Sprint(all), fmt.Sprint(twice), counted(outcomes),
			[]string{hidden, "–"}[who], lab.Number(lab.Median(p.atFirst[who]...)), lab.Number(lab.Median(p.atLast[who]...)),
			lab.Number(p.open[who].mean()), fmt.Sprint(p.open[who].most), fmt.Sprint(len(p.open[who].clients)),
			unused)
	}
}
