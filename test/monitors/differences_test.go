//go:build monitors

package monitors_test

// The causes of what differs in several tests.
const (
	// rollupDelta in app/vmselect/promql/rollup.go; extrapolatedRate in promql/functions.go.
	extrapolation = "VictoriaMetrics takes the sample before the window, where Prometheus extrapolates: a rate that changes is seen otherwise"
	// https://docs.victoriametrics.com/victoriametrics/vmalert/#groups, "chaining".
	chain = "vmalert stores what a group records after the group: its later rules read what was recorded a minute before"
)

// differences lists the known differences with their causes, by evaluator and test, and those of expressions by place. An entry that no
// longer differs fails.
var differences = map[string]map[string]string{
	"expression": {},
	"Prometheus 2.42": {
		"recording/an engine and a GPU that go away": "the window is a millisecond shorter here, and so is what is extrapolated to its border",
	},
	"VictoriaMetrics": {
		"measurement/ReplaydReloadFailed":                                       "vmalert-tool's tests begin in the year 2000, and a value of this one is an instant",
		"measurement_processes/ReplaydGone":                                     chain,
		"measurement_processes/ReplaydGone, for a day":                          chain,
		"recording/an engine and a GPU that go away":                            extrapolation,
		"recording/counters that begin again":                                   extrapolation,
		"service/ReplaydTargetDown":                                             extrapolation,
		"service_lag/ReplaydTargetDown, scraped each minute":                    extrapolation,
		"service_sessions/ReplaydSessionSLOBurn":                                extrapolation,
		"service_slo/ReplaydSLOBurnFast":                                        extrapolation,
		"workloads_history/quantiles over 15 minutes are of all their requests": extrapolation,
		// Of these loops, those of a minute have no loop before on vmalert: the recorded loop is a minute old, and the one an hour ago is not.
		"workloads_history/windows and places that are hours long": chain + "; " + extrapolation,
	},
}
