package result

import (
	"cmp"
	"fmt"
	"strings"

	"replayd/internal/measure"
	"replayd/internal/number"
)

// A Reading says where the answers of a run differed from the API, and how they were read. docs/reference/answers.md has
// the rules.
type Reading struct {
	Rules   map[string]int64 `json:"usage_rules,omitempty"` // ok answers by the rule that was applied to their usage
	Reasons int64            `json:"other_finish_reasons,omitempty"`
	Reason  string           `json:"first_other_finish_reason,omitempty"`
	Unread  int64            `json:"unread_events,omitempty"` // events, or parts of them, without a meaning
	First   string           `json:"first_unread_event,omitempty"`
}

func (a *Reading) add(r *measure.Request) {
	if r.Outcome == measure.OK && r.Usage.Rules != 0 {
		if a.Rules == nil {
			a.Rules = map[string]int64{}
		}
		for _, rule := range r.Usage.Rules.Names() {
			a.Rules[rule]++
		}
	}
	if r.Finish == measure.OtherFinish {
		if a.Reasons++; a.Reason == "" {
			a.Reason = string(r.FinishReason)
		}
	}
	if r.Unread > 0 {
		if a.Unread == 0 {
			a.First = string(r.UnreadText)
		}
		a.Unread += int64(r.Unread)
	}
}

// Add returns the readings of two shards as one.
func (a *Reading) Add(b *Reading) *Reading {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &Reading{
		Rules: measure.AddUp(a.Rules, b.Rules), Reasons: a.Reasons + b.Reasons, Reason: cmp.Or(a.Reason, b.Reason),
		Unread: a.Unread + b.Unread, First: cmp.Or(a.First, b.First),
	}
}

// Lines returns a sentence for each thing that was unusual, with a short name for it.
func (a *Reading) Lines() (lines [][2]string) {
	if a == nil {
		return nil
	}
	add := func(name, text string) { lines = append(lines, [2]string{name, text}) }
	var rules []string
	for _, name := range measure.UsageRuleNames() {
		if n := a.Rules[name]; n > 0 {
			rules = append(rules, name+" in "+number.Count(int(n), "ok answer"))
		}
	}
	if len(rules) > 0 {
		add("usage", strings.Join(rules, ", ")+": the server's token counts are partial or cannot be")
	}
	if a.Reasons > 0 {
		add("finish reason", fmt.Sprintf("%s with one that is not known: it counts as a good end; the first: %q",
			number.Count(int(a.Reasons), "answer"), a.Reason))
	}
	if a.Unread > 0 {
		add("not understood", fmt.Sprintf("%s of answers without a meaning to replayd; the first: %s",
			number.Count(int(a.Unread), "part"), a.First))
	}
	return lines
}
