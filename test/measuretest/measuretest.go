// Package measuretest has the requests that tests of several rooms count, record and summarize.
package measuretest

import (
	"time"

	"replayd/internal/measure"
)

// Start is when the first request of a fixture is due.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// SLO is the service level of the fixtures.
var SLO = measure.SLO{{Quantity: measure.TTFT, Limit: 100}, {Quantity: measure.TPOT, Limit: 15}, {Quantity: measure.E2E, Limit: 1000}, {Quantity: measure.PerUser, Limit: 1}, {Quantity: measure.OutputLength, Limit: 1}}

// Request is one that was due at start + due, on time, and got its chunks at those times after the write.
func Request(id string, due time.Duration, o measure.Outcome, chunks ...time.Duration) *measure.Request {
	at := Start.Add(due)
	r := &measure.Request{ID: id, Outcome: o, Timeline: measure.Timeline{Planned: at, Due: at, Ready: at, Lane: at, Write: at, End: at, Chunks: chunks, Kernel: true}}
	if n := len(chunks); n > 0 {
		r.Timeline.End = at.Add(chunks[n-1])
		r.Usage = measure.Usage{Prompt: 100, Output: n, Source: measure.UsageFinal}
	}
	return r
}

// Script are the requests of a small run: four ok, three that failed.
func Script() []*measure.Request {
	late := Request("conversation/3/0", 0, measure.OK, 50*time.Millisecond, 60*time.Millisecond, 80*time.Millisecond)
	late.Timeline.Lane = Start.Add(2 * time.Millisecond)
	late.Timeline.Waited = true
	late.Timeline.Write = Start.Add(3 * time.Millisecond)
	late.Timeline.Connect = time.Millisecond / 2
	late.Timeline.ReadDelays = []time.Duration{20 * time.Microsecond, -time.Microsecond}
	late.InputTokens, late.OutputTokens = 100, 3
	late.Usage.Cached, late.Usage.Reasoning = 64, 1

	turn := Request("conversation/3/1", time.Second, measure.OK, 200*time.Millisecond, 260*time.Millisecond) // over the bounds of TTFT and of TPOT
	turn.Timeline.Ready = turn.Timeline.Due.Add(500 * time.Millisecond)
	turn.Timeline.Lane, turn.Timeline.Write = turn.Timeline.Ready, turn.Timeline.Ready
	turn.Timeline.MergedReads = 2
	turn.InputTokens, turn.OutputTokens = 101, 3 // both differ from usage
	turn.Retried = true

	counted := Request("conversation/3/2", 2*time.Second, measure.OK, 10*time.Millisecond, 2010*time.Millisecond) // over e2e and TPOT
	counted.Usage.Source, counted.Usage.Prompt = measure.UsageCounted, 0
	counted.InputTokens, counted.OutputTokens = 100, 9

	single := Request("conversation/3/3", 3*time.Second, measure.OK, 40*time.Millisecond) // one token: no TPOT
	single.Timeline.Kernel = false
	single.InputTokens, single.OutputTokens = 100, 1

	cut := Request("conversation/3/4", 4*time.Second, measure.Truncated, 20*time.Millisecond, 30*time.Millisecond)
	cut.InputTokens = 7 // no mismatch: it failed
	refused := Request("conversation/3/5", 5*time.Second, measure.ConnectFailed)
	refused.Timeline.Write, refused.Timeline.Connect = time.Time{}, 0
	busy := Request("conversation/3/6", 6*time.Second, measure.HTTP429)

	return []*measure.Request{late, turn, counted, single, cut, refused, busy}
}

// Long is an ok request of 300 chunks, 10 ms apart.
func Long() *measure.Request {
	chunks := make([]time.Duration, 300)
	for i := range chunks {
		chunks[i] = 50*time.Millisecond + time.Duration(i)*10*time.Millisecond
	}
	return Request("conversation/3/17", 0, measure.OK, chunks...)
}

// Sessions are the ended sessions of a small run: three ok, of which one takes longer than 10 minutes and one has a server that does not
// report cached tokens, one that failed and one that was cut.
func Sessions() []measure.Session {
	minutes := func(tools, lateness, ttft, decode time.Duration) measure.SessionTime {
		return measure.SessionTime{tools * time.Minute, lateness * time.Minute, ttft * time.Minute, decode * time.Minute}
	}
	return []measure.Session{
		{
			Name: "quick", Outcome: measure.SessionOK, Begun: Start, Time: minutes(3, 0, 1, 2), Requests: 4, Prompt: 1000,
			Cached: 900, CacheReported: true,
		},
		{
			Name: "slow", Outcome: measure.SessionOK, Begun: Start, Time: minutes(20, 1, 9, 10), Requests: 30, Prompt: 3000,
			Cached: 1500, CacheReported: true,
		},
		{Name: "failed", Outcome: measure.SessionNotOK, Begun: Start, Time: minutes(1, 1, 1, 1), Requests: 2, Prompt: 50},
		{Name: "mute", Loop: 1, Pass: 1, Outcome: measure.SessionOK, Begun: Start.Add(time.Hour), Time: minutes(0, 0, 1, 9), Requests: 1, Prompt: 70},
		{Name: "cut", Loop: 1, Outcome: measure.SessionCut, Begun: Start.Add(time.Hour)},
	}
}
