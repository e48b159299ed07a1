package report

import (
	"replayd/internal/number"
	"replayd/internal/result"
)

// maxIDs is the number of ids in JSON of rows without a partner, for each run.
const maxIDs = 100

// Differences returns the differences of each run to the first as JSON objects: the figures of the page, and the rows
// that were held against each other. There are none without two runs that have rows.
func Differences(runs []result.Run) []number.Object {
	all := withRows(allOf(runs))
	if len(all) < 2 {
		return nil
	}
	from := all[0]
	each, by, _ := judge(all)
	list := make([]number.Object, len(each))
	for i, to := range all[1:] {
		compared := "blocks"
		if by[i].Most() {
			compared = "rows_and_blocks"
		}
		figures := make([]number.Object, len(each[i]))
		for n, j := range each[i] {
			in := j.interval()
			figures[n] = number.Object{
				"figure", j.figure.name, "unit", j.figure.unit, "against", j.from.Value, "run", j.to.Value,
				"difference", in.Value, "low", in.Low, "high", in.High, "level", 1 - j.tail, "verdict", j.verdict(),
			}
		}
		alone := by[i].Alone
		list[i] = number.Object{
			"run", to.Name, "against", from.Name, "compared_by", compared, "assumption", Assumption,
			"rows",
			number.Object{"run", len(to.rows), "against", len(from.rows), "paired", len(by[i].Of[0]), "both_ok", by[i].BothOK()},
			"without_partner",
			number.Object{
				"run", len(alone[1]), "against", len(alone[0]),
				"run_ids", idsOf(alone[1], maxIDs), "against_ids", idsOf(alone[0], maxIDs),
			},
			"figures", figures,
		}
	}
	return list
}
