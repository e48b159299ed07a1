package canary

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A Void is the reason why a pair says nothing.
type Void uint8

// Reasons; the list is complete. Where a pair has several, the first one counts.
const (
	NotVoid          Void = iota // the pair is judged
	VoidPaused                   // the workload was paused
	VoidBudget                   // the budget did not allow the request
	VoidMissed                   // the process was not running at the instant, or lacked a resource to send the request
	VoidInvalid                  // the request could not be built
	VoidShutdown                 // replayd, or the workload, was stopped before both requests had ended
	VoidAborted                  // a stop cut the request off
	VoidModelChanged             // the server serves another model than the request names
	VoidPodsChanged              // the pods of a side changed before both requests had ended
	VoidTraceChanged             // the row is of a trace that has changed since
	VoidWarmUp                   // the servers warm up
	VoidRestarted                // both requests had not ended, or their session had failed, when the evidence began anew
	VoidLate                     // replayd sent a request late by more than 5 % of its first latency; of one that failed, of the other side's
	VoidApart                    // the sides sent the row at different instants
	VoidOneSide                  // the row came due on one side alone
	VoidOverflow                 // too many pairs were open
	voids
)

// Voids lists all reasons.
var Voids = func() (all []Void) {
	for v := NotVoid + 1; v < voids; v++ {
		all = append(all, v)
	}
	return all
}()

// voidTexts has the name of each reason, and words for what kept the pairs from being compared and what to do about it.
var voidTexts = [voids]struct{ name, words string }{
	NotVoid:    {"", "the reasons are not known"},
	VoidPaused: {"paused", "the workload was paused: resume it"},
	VoidBudget: {"budget", "the budget was spent: raise it, or lower the load (speed)"},
	VoidMissed: {
		"missed",
		"replayd did not run at their instants, or could not send them: give it more CPU, or what its log says it lacks",
	},
	VoidInvalid:      {"invalid", "their requests could not be built: the log has the rows"},
	VoidShutdown:     {"shutdown", "replayd was stopped"},
	VoidAborted:      {"aborted", "a stop cut them off: allow a longer drain"},
	VoidModelChanged: {"model_changed", "a server began to serve another model"},
	VoidPodsChanged:  {"pods_changed", "the pods of a server changed: hold its scaling and its rollouts meanwhile"},
	VoidTraceChanged: {"trace_changed", "the trace was changed: replace it seldom"},
	VoidWarmUp:       {"warm_up", "the servers warm up (warm_up)"},
	VoidRestarted:    {"restarted", "the evidence began anew"},
	VoidLate:         {"late", "replayd sent them late: give it more CPU, or lower the load (speed)"},
	VoidApart:        {"apart", "the sides sent them at different instants: give replayd more CPU"},
	VoidOneSide: {
		"one_side", "they came due on one side alone: the other one's workload has a fault, see its card on /live",
	},
	VoidOverflow: {"overflow", "too many were open at once: lower the load (speed)"},
}

func (v Void) String() string { return voidTexts[v].name }

// VoidCounts are pairs by their reason. As JSON it has the names of the reasons that occurred.
type VoidCounts [voids]int64

// MarshalJSON implements json.Marshaler.
func (c VoidCounts) MarshalJSON() ([]byte, error) {
	named := map[string]int64{}
	for v, n := range c {
		if n != 0 {
			named[Void(v).String()] = n
		}
	}
	return json.Marshal(named)
}

// UnmarshalJSON implements json.Unmarshaler. Reasons of other versions are left out.
func (c *VoidCounts) UnmarshalJSON(text []byte) error {
	named := map[string]int64{}
	if err := json.Unmarshal(text, &named); err != nil {
		return err
	}
	*c = VoidCounts{}
	for _, v := range Voids {
		c[v] = named[v.String()]
	}
	return nil
}

// Pairs counts pairs that have ended.
type Pairs struct {
	Judged int64      `json:"judged"`
	Void   int64      `json:"void"`
	Voids  VoidCounts `json:"void_reasons"` // Void by reason
	Bad    [2]int64   `json:"bad"`          // judged pairs whose request was bad, by side
}

func (p *Pairs) add(one *Pair) {
	if one.Void != NotVoid {
		p.Void++
		p.Voids[one.Void]++
		return
	}
	p.Judged++
	for side, r := range one.Requests {
		if r.Bad {
			p.Bad[side]++
		}
	}
}

// Less returns the pairs that are not among others.
func (p Pairs) Less(others Pairs) Pairs {
	p.Judged -= others.Judged
	p.Void -= others.Void
	for v := range p.Voids {
		p.Voids[v] -= others.Voids[v]
	}
	for side := range p.Bad {
		p.Bad[side] -= others.Bad[side]
	}
	return p
}

// maxVoidWhy says the share of void pairs, and their most frequent reason.
func (p *Pairs) maxVoidWhy() string {
	most := NotVoid
	for _, v := range Voids {
		if p.Voids[v] > p.Voids[most] {
			most = v
		}
	}
	return fmt.Sprintf("%.0f %% of the pairs are void, mostly because %s",
		100*float64(p.Void)/float64(p.Void+p.Judged), voidTexts[most].words)
}

// Text lists the reasons that occurred, with the number of pairs, as in "late 90, paused 4".
func (c *VoidCounts) Text() string {
	var all []string
	for _, v := range Voids {
		if c[v] > 0 {
			all = append(all, fmt.Sprintf("%s %d", v, c[v]))
		}
	}
	return strings.Join(all, ", ")
}
