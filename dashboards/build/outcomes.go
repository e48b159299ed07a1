package main

import "replayd/internal/measure"

// Colors of failures and of drops, from the most frequent ones on. Outcomes and reasons have the same color on every
// dashboard.
var (
	reds   = []string{"red", "dark-red", "light-red", "semi-dark-red", "super-light-red"}
	ambers = []string{"orange", "dark-orange", "light-orange", "semi-dark-yellow", "super-light-orange"}
)

// Colors of usage rules, which change counts but fail nothing.
var blues = [measure.NumUsageRules]string{"blue", "purple", "green", "light-blue", "light-purple", "dark-blue", "light-green"}

// outcomeColors draws ok in green, failures in reds, and what replayd itself ended in gray.
func (p *panel) outcomeColors() *panel {
	p.colored("^ok$", green)
	n := 0
	for _, o := range measure.Outcomes() {
		switch o {
		case measure.OK:
		case measure.Cancelled, measure.Aborted:
			p.colored("^"+string(o)+"$", pale)
		default:
			p.colored("^"+string(o)+"$", reds[n%len(reds)])
			n++
		}
	}
	return p
}

// dropColors draws drops in ambers, and rows that were filtered, which are not expected, in gray.
func (p *panel) dropColors() *panel {
	for i, r := range measure.DropReasons() {
		color := ambers[i%len(ambers)]
		if r == measure.Filtered {
			color = pale
		}
		p.colored("^"+string(r)+"$", color)
	}
	return p
}
