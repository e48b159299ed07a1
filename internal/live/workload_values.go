package live

import (
	"time"

	"replayd/internal/measure"
	"replayd/internal/number"
)

// workloadValues holds the values that change from tick to tick. Maps leave out zero values.
type workloadValues struct {
	Verdict    verdict `json:"verdict"`
	Phase      Phase   `json:"phase"`
	TargetText string  `json:"target_text"`
	Started    instant `json:"started"`

	Server number.Object `json:"server,omitempty"` // of its target

	Loop         int64 `json:"loop"`
	Position     span  `json:"position"`
	LoopDuration span  `json:"loop_duration"`
	Next         *span `json:"next,omitempty"` // from now
	Skew         span  `json:"skew"`

	Expected int64                        `json:"expected"`
	Finished int64                        `json:"finished"`
	Dropped  int64                        `json:"dropped"` // without filtered
	InFlight int64                        `json:"in_flight"`
	Waiting  int64                        `json:"waiting"`
	Retries  int64                        `json:"retries"`
	Outcomes map[measure.Outcome]int64    `json:"outcomes"`
	Drops    map[measure.DropReason]int64 `json:"drops"`

	Rates  number.Object `json:"rates"` // of the last 10 seconds; tokens count when their request ends
	Minute lastMinute    `json:"minute"`

	Failures []failure `json:"failures,omitempty"` // the last failures, or in news the one that changed
	Rows     []row     `json:"rows,omitempty"`     // all rows, or in news the new ones
}

type lastMinute struct {
	Outcomes  map[measure.Outcome]int64    `json:"outcomes"`
	Drops     map[measure.DropReason]int64 `json:"drops"`
	WithinSLO value                        `json:"within_slo"` // service attainment; null without an SLO or eligible requests
	TTFT      quantiles                    `json:"ttft"`
	TPOT      quantiles                    `json:"tpot"`
	Lateness  quantiles                    `json:"lateness"`
}

// quantiles holds quantiles of latencies in seconds.
type quantiles struct {
	P50 value `json:"p50"`
	P90 value `json:"p90"`
	P99 value `json:"p99"`
}

func (h *histogram) quantiles() quantiles {
	return quantiles{h.percentile(50), h.percentile(90), h.percentile(99)}
}

// values returns the values of the last tick, with the current latencies. The caller holds the Board's lock.
func (w *Workload) values(now time.Time) workloadValues {
	h, s := w.history, &w.state
	h.mu.Lock()
	latency, minute, recent := h.lastMinute(), h.within(minuteMarks*second), h.within(rateTime)
	h.mu.Unlock()
	f := workloadValues{
		Verdict: w.verdict, Phase: s.Phase, TargetText: cut(s.TargetText, reasonBytes),
		Started: instant(s.Started), Loop: s.Loop, Position: span(s.Position), LoopDuration: span(s.LoopDuration), Skew: span(s.Skew),
		Expected: s.Ledger.Expected, InFlight: s.Ledger.InFlight, Waiting: s.Ledger.Waiting, Retries: s.Ledger.Retries,
		Finished: s.Ledger.Finished(), Dropped: s.Ledger.Unsent(),
		Outcomes: less(s.Ledger.Outcomes, nil), Drops: drops(s.Ledger),
		Rates: number.Object{
			"due", recent.perSecond(recent.Expected), "finished", recent.perSecond(recent.Finished()),
			"output_tokens", recent.perSecond(recent.OutputTokens), "prompt_tokens", recent.perSecond(recent.PromptTokens),
		},
		Minute: lastMinute{
			Outcomes: less(minute.Outcomes, nil), Drops: drops(minute.Ledger), WithinSLO: unknown,
			TTFT: latency[ttft].quantiles(), TPOT: latency[tpot].quantiles(), Lateness: latency[lateness].quantiles(),
		},
	}
	if share, ok := minute.ServiceAttainment(); ok && len(w.options.SLO) > 0 {
		f.Minute.WithinSLO = value(share)
	}
	if !s.Next.IsZero() {
		f.Next = new(span(max(0, s.Next.Sub(now))))
	}
	return f
}
