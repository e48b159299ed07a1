package report

import (
	"fmt"
	"html"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"replayd/internal/canary"
	"replayd/internal/terminal"
	"replayd/test/resulttest"
)

// compared returns the comparison of some pairs, two a second. The candidate's times are as many times as long, and form changes the pairs.
func compared(pairs int, slower float64, form func(i int, p *canary.Pair, random *rand.Rand)) Canary {
	random := rand.New(rand.NewPCG(4, 2))
	c := Canary{
		Options: canary.Defaults(), History: &canary.History{}, Workloads: [2]string{"compare", "compare@candidate"},
		Settings: []Fact{{"trace", "trace.jsonl"}, {"baseline", "http://a:8000"}, {"candidate", "http://b:8000"}},
	}
	c.MinTime = 20 * time.Second
	comparison := canary.New(c.Options)
	comparison.Ended = c.History.Block
	for i := range pairs {
		at := resulttest.Begin.Add(time.Duration(i) * 500 * time.Millisecond)
		p := &canary.Pair{ID: fmt.Sprint("0/", i), At: at}
		for side, factor := range []float64{1, slower} {
			times := func(d time.Duration) time.Duration {
				return time.Duration(float64(d) * factor * math.Exp(0.1*random.NormFloat64()))
			}
			ttft, tpot := times(200*time.Millisecond), times(10*time.Millisecond)
			p.Requests[side] = canary.Request{Sent: at, First: at.Add(ttft), End: at.Add(ttft + 10*tpot), TTFT: ttft, TPOT: tpot, E2E: ttft + 10*tpot}
		}
		if form != nil {
			form(i, p, random)
		}
		comparison.Add(p)
		c.History.Pair(p)
		if j := comparison.Judge(); j.Verdict != canary.Undecided {
			break
		}
	}
	c.Judgment = comparison.Judge()
	return c
}

// fails makes each 25th request of the candidate, and each 100th of the baseline, fail, and each 50th pair void.
func fails(i int, p *canary.Pair, _ *rand.Rand) {
	bad := func(side canary.Side, why string) {
		r := &p.Requests[side]
		*r = canary.Request{Sent: r.Sent, End: r.Sent.Add(time.Second), Bad: true, Why: why}
	}
	if i%25 == 7 {
		bad(canary.Candidate, "http_5xx")
	}
	if i%100 == 32 {
		bad(canary.Baseline, "timeout_total")
	}
	if i%50 == 3 {
		p.Void = canary.VoidLate
	}
}

func queues(_ int, p *canary.Pair, _ *rand.Rand) {
	for side := range p.Requests {
		r := &p.Requests[side]
		r.TTFT, r.First = r.TTFT+5*time.Second, r.First.Add(5*time.Second)
		r.E2E, r.End = r.E2E+5*time.Second, r.End.Add(5*time.Second)
	}
}

func TestCanaryGolden(t *testing.T) {
	c := compared(2000, 1.12, fails)
	c.Unread = [2]bool{true, true}
	p := c.Page()
	p.Made = "Made by a test."
	resulttest.Golden(t, "canary.html", []byte(withoutShapes(written(t, p))))
}

// The page and the terminal have the same verdict in the same words, and the same figures.
func TestCanaryOneTruth(t *testing.T) {
	for name, c := range map[string]Canary{
		"fail": compared(2000, 1.12, nil), "fails by its errors": compared(2000, 1, func(i int, p *canary.Pair, random *rand.Rand) {
			if i%4 == 0 {
				fails(7, p, random)
			}
		}),
		"pass": compared(2000, 0.99, nil), "near": compared(900, 1.05, fails), "queues": compared(2000, 1, queues), "soon": compared(30, 1, nil), "none": compared(0, 1, nil),
	} {
		page := written(t, c.Page())
		var lines []string
		for line := range strings.Lines(terminal.Comparison(&c.Judgment, c.Options, 0)) {
			lines = append(lines, strings.TrimSpace(line))
		}
		verdict := strings.TrimPrefix(lines[len(lines)-1], "verdict: ")
		if lead := `<p class="lead">` + strings.ToUpper(verdict[:1]) + html.EscapeString(verdict[1:]) + `.</p>`; !strings.Contains(page, lead) {
			t.Errorf("%s: the page lacks %q", name, lead)
		}
		want := [][]string{}
		for _, line := range lines[:len(lines)-2] {
			want = append(want, regexp.MustCompile(` {2,}`).Split(line, -1))
		}
		got := [][]string{}
		if len(want) > 0 { // without a block there is no table
			_, table, _ := strings.Cut(page, "<table>")
			table, _, _ = strings.Cut(table, "</table>")
			for _, row := range regexp.MustCompile(`<tr>.*?</tr>`).FindAllString(table, -1) {
				var cells []string
				for _, cell := range regexp.MustCompile(`<t[hd][^>]*>(.*?)</t[hd]>`).FindAllStringSubmatch(row, -1) {
					if text := strings.TrimSpace(html.UnescapeString(cell[1])); text != "" {
						cells = append(cells, text)
					}
				}
				got = append(got, cells)
			}
		} else if strings.Contains(page, "evidence worse") {
			t.Errorf("%s: there is a table", name)
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%s: the page has\n%q, the terminal\n%q", name, got, want)
		}
	}
}

// A page of months of blocks has plots of at most 2,000 and tables of at most 100 of them.
func TestCanaryOfManyBlocks(t *testing.T) {
	c := compared(900, 1.05, nil)
	blocks, _ := c.History.Blocks()
	last := blocks[len(blocks)-1]
	size := func(more int) int {
		for range more {
			last.Number++
			last.Begin, last.End = last.End, last.End.Add(time.Minute)
			c.History.Block(last)
		}
		return len(written(t, c.Page()))
	}
	few := size(10 * canary.MostBlocks)
	if many := size(100 * canary.MostBlocks); many > 3*few || many > 2_000_000 {
		t.Errorf("%d bytes, and %d of ten times as many blocks", few, many)
	}
	if text := written(t, c.Page()); !strings.Contains(text, "blocks, one in ") {
		t.Error("the page does not say that not all blocks are drawn")
	}
}

// What servers and users name never becomes markup.
func TestCanaryEscapes(t *testing.T) {
	const bad = `</script><img src=x onerror=alert(1)>`
	c := compared(300, 1.1, func(i int, p *canary.Pair, random *rand.Rand) {
		fails(i, p, random)
		p.ID, p.Requests[1].Why = bad, bad
	})
	c.Settings, c.Workloads = []Fact{{bad, bad}}, [2]string{bad, bad}
	if text := written(t, c.Page()); strings.Contains(text, "<img") || !strings.Contains(text, "&lt;img") {
		t.Error("want what comes from outside escaped")
	}
}
