package report

import (
	"fmt"
	"math"
	"strings"

	"replayd/internal/number"
	"replayd/internal/result"
	"replayd/internal/stats"
)

// rowByRow compares the latencies of the rows that both runs have, each row with itself: geometric means over the rows
// that ended ok in both, by blocks of the time in which the first run sent them. There are no such figures if fewer
// than half of the rows of a run have a partner.
func rowByRow(from runData, by result.Pairs) (all []judgment) {
	if !by.Most() {
		return nil
	}
	for _, q := range shownQuantities {
		var logs [2][]stats.Block
		for side := range logs {
			logs[side] = make([]stats.Block, from.blocks)
		}
		for i := range by.Of[0] {
			a, b := by.Of[0][i].Value(q.Quantity), by.Of[1][i].Value(q.Quantity)
			if !(a > 0 && b > 0) {
				continue
			}
			block := from.block(by.Of[0][i].Start)
			for side, v := range []float64{a, b} {
				blocks := &logs[side][block]
				blocks.Sum, blocks.Weight = blocks.Sum+math.Log(v), blocks.Weight+1
			}
		}
		a, b := stats.NewEstimate(logs[0]), stats.NewEstimate(logs[1])
		if math.IsNaN(a.Value) {
			continue
		}
		all = append(all, judgment{
			figure: comparedFigure{name: upper(q.short) + " row by row", unit: "ms", headline: true, of: ofRows},
			from:   stats.Estimate{Value: math.Exp(a.Value)}, to: stats.Estimate{Value: math.Exp(b.Value)},
			by: stats.NewDifference(a, b), ratio: true,
		})
	}
	return all
}

// maxAlone is the number of ids that a text names of rows without a partner.
const maxAlone = 5

func pairsText(from, to runData, by result.Pairs) string {
	n := number.Whole(len(by.Of[0]))
	of := fmt.Sprintf("the %s rows of %s and the %s of %s",
		number.Whole(len(from.rows)), from.name(), number.Whole(len(to.rows)), to.name())
	if !by.Most() {
		return fmt.Sprintf("Rows are not paired: %s of %s are the same by id, session and asked lengths, fewer than half. "+
			"Only blocks of time are held against each other.", n, of)
	}
	text := fmt.Sprintf("Rows are paired by id, session and asked lengths: %s of %s; both ended ok in %s.",
		n, of, number.Whole(by.BothOK()))
	for side, run := range []runData{from, to} {
		alone := by.Alone[side]
		if len(alone) == 0 {
			continue
		}
		ids := idsOf(alone, maxAlone)
		if len(alone) > len(ids) {
			ids = append(ids, "…")
		}
		text += fmt.Sprintf(" Without a partner: %s of %s (%s).",
			number.Whole(len(alone)), run.name(), strings.Join(ids, ", "))
	}
	return text
}

func idsOf(rows []result.Row, most int) []string {
	ids := make([]string, min(len(rows), most))
	for i := range ids {
		ids[i] = rows[i].ID
	}
	return ids
}
