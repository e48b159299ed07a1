package report

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"replayd/internal/measure"
	"replayd/internal/result"
)

// uneven returns a run of one trace: 785 rows in 3 minutes whose prompts differ by a factor of 100. Each answer has
// noise of its own, as two runs of one server have.
func uneven(name string, seed uint64, slow float64) result.Run {
	trace, own := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(seed, 2))
	run := noisy(name, seed, 785, 1)
	for i := range run.Rows {
		r := &run.Rows[i]
		latency := r.Latency - r.TTFT
		r.TTFT = slow * 100 * math.Exp(1.2*trace.NormFloat64()+0.29*own.NormFloat64())
		r.ID, r.Latency = fmt.Sprintf("run/0/%d", i), latency+r.TTFT
		r.Start = run.Rows[0].Start + int64(i)*180e9/785
		r.End = r.Start + int64(r.Latency*1e6)
	}
	return run
}

func withoutIDs(run result.Run) result.Run {
	rows := append([]result.Row(nil), run.Rows...)
	for i := range rows {
		rows[i].ID = ""
	}
	run.Rows = rows
	return run
}

// Prefill that takes 11 % longer is seen row by row; the means and percentiles of the runs do not tell it from chance.
func TestRowByRow(t *testing.T) {
	a, b := uneven("a", 1, 1), uneven("b", 2, 1.11)
	by, lead, text := verdicts(t, a, b)
	if by["TTFT row by row"] != "worse" || by["ITL row by row"] != "no difference shown" {
		t.Errorf("TTFT: %s, ITL: %s", by["TTFT row by row"], by["ITL row by row"])
	}
	for _, figure := range []string{"TTFT mean", "TTFT p50", "TTFT p90"} {
		if by[figure] == "worse" {
			t.Errorf("%s: worse: this test is too easy", figure)
		}
	}
	for _, want := range []string{
		"Rows are paired by id, session and asked lengths: 785 of the 785 rows of a and the 785 of b; both ended ok in 785",
		"One family: 18 figures", "Repeat runs, in turns",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	if !strings.HasPrefix(lead, "b against a: TTFT row by row +1") {
		t.Error(lead)
	}

	by, lead, _ = verdicts(t, a, uneven("b", 3, 1))
	if by["TTFT row by row"] != "no difference shown" || !strings.Contains(lead, "no difference is shown") {
		t.Errorf("equal servers: %s; %s", by["TTFT row by row"], lead)
	}
}

// The figures are geometric means of rows that ended ok in both runs: 1, 2 and 4 against 2, 4 and 32 ms are 2 and 6.35.
func TestRowByRowByHand(t *testing.T) {
	a, b := result.Run{Name: "a"}, result.Run{Name: "b"}
	nan := math.NaN()
	for i, ttft := range [][2]float64{{1, 2}, {2, 4}, {4, 32}, {1e6, nan}, {nan, 1e6}} {
		for side, run := range []*result.Run{&a, &b} {
			start := int64(1e18 + i*1e9)
			row := result.Row{
				ID: fmt.Sprintf("run/0/%d", i), Outcome: measure.OK, Start: start, End: start + 1e8,
				TTFT: ttft[side], ITL: nan, Latency: nan,
			}
			if math.IsNaN(ttft[side]) {
				row.Outcome = measure.HTTP5xx
			}
			run.Rows = append(run.Rows, row)
		}
	}
	all := rowByRow(newRunData(a), result.NewPairs(a.Rows, b.Rows))
	if len(all) != 1 {
		t.Fatalf("%d figures, want that of TTFT", len(all))
	}
	from, to := all[0].from.Value, all[0].to.Value
	off := max(math.Abs(from-2), math.Abs(to-math.Cbrt(256)), math.Abs(all[0].interval().Value-(to-from)))
	if !(off < 1e-12) {
		t.Errorf("%v and %v, interval %+v", from, to, all[0].interval())
	}
}

// Where fewer than half of the rows are the same, blocks of time alone are compared, and the page says so.
func TestFewRowsInCommon(t *testing.T) {
	a, b := uneven("a", 1, 1), uneven("b", 2, 1.11)
	for i := range b.Rows {
		if i%3 > 0 {
			b.Rows[i].Prompt.Asked = 9
		}
	}
	by, _, text := verdicts(t, a, b)
	if _, there := by["TTFT row by row"]; there {
		t.Error("want no figure row by row")
	}
	want := "Rows are not paired: 262 of the 785 rows of a and the 785 of b are the same by id, session and asked " +
		"lengths, fewer than half. Only blocks of time are held against each other."
	if !strings.Contains(text, want) {
		t.Errorf("want %q in\n%s", want, text)
	}
	whole, _, _ := verdicts(t, withoutIDs(a), withoutIDs(b))
	if fmt.Sprint(whole) != fmt.Sprint(by) {
		t.Errorf("got %v, want what pages without ids say: %v", by, whole)
	}
}

// Rows without a partner are named, some on the page and more of them as JSON.
func TestRowsWithoutPartner(t *testing.T) {
	a, b := uneven("a", 1, 1), uneven("b", 2, 1.11)
	a.Rows, b.Rows = a.Rows[2:], b.Rows[:700]
	_, _, text := verdicts(t, a, b)
	for _, want := range []string{
		"698 of the 783 rows of a and the 700 of b",
		"Without a partner: 85 of a (run/0/700, run/0/701, run/0/702, run/0/703, run/0/704, …).",
		"Without a partner: 2 of b (run/0/0, run/0/1).",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	list := Differences([]result.Run{a, b})
	if len(list) != 1 {
		t.Fatalf("%d differences, want 1", len(list))
	}
	line, err := json.Marshal(list[0])
	if err != nil {
		t.Fatal(err)
	}
	text = string(line)
	for _, want := range []string{
		`"run":"b","against":"a","compared_by":"rows_and_blocks","assumption":"One run`,
		`"rows":{"run":700,"against":783,"paired":698,"both_ok":698}`,
		`"without_partner":{"run":2,"against":85,"run_ids":["run/0/0","run/0/1"],"against_ids":["run/0/700",`,
		`"figures":[{"figure":"TTFT row by row","unit":"ms","against":`,
		`"verdict":"worse"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %s in\n%s", want, text)
		}
	}
	if one := Differences([]result.Run{a, {Name: "none"}}); one != nil {
		t.Errorf("one run with rows: %v", one)
	}
}
