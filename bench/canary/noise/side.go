package main

import (
	"math"
	"math/rand/v2"
	"time"

	"replayd/internal/canary"
	replay "replayd/internal/trace"
)

// A side is one server: its pods, the replayed requests, and those of its own users.
type side struct {
	trial    *trial
	which    canary.Side
	effect   effect // on this side
	rng      *rand.Rand
	pods     []*pod
	rows     []sent
	out      []answered // by row
	sessions []session
	soonest  int // the session with the next request
	bursts   calendar
}

// A sent row has its instant and its pod.
type sent struct {
	row
	at  float64
	pod int
}

// A session of a user has a prompt and a pod of its own. Next is its end if it sends no request before.
type session struct {
	next, end float64
	prompt    int
	pod       *pod
}

func newSide(t *trial, which canary.Side, rollout uint64) *side {
	s := &side{trial: t, which: which, rng: rand.New(rand.NewPCG(rollout, uint64(1+which)))}
	if which == canary.Candidate {
		s.effect = t.effect
	}
	for range t.load.pods {
		s.pods = append(s.pods, &pod{
			load: &t.load, decode: orOne(s.effect.decode), rng: s.rng,
			clock: newClock(&t.noise, which, orOne(s.effect.all), s.rng),
		})
	}
	s.bursts = newCalendar(t.noise.bursts, s.rng)
	s.sessions = make([]session, t.noise.users.sessions)
	for i := range s.sessions {
		s.begin(&s.sessions[i], 0)
	}
	s.seek()
	return s
}

func orOne(factor float64) float64 {
	if factor == 0 {
		return 1
	}
	return factor
}

// begin puts a new user in the place of a session.
func (s *side) begin(u *session, at float64) {
	all := s.trial.trace.rows
	*u = session{
		end: at + s.trial.noise.users.long*s.rng.ExpFloat64(), prompt: all[s.rng.IntN(len(all))].prompt,
		pod: s.pods[s.rng.IntN(len(s.pods))],
	}
	s.wait(u, at)
}

// wait sets the instant of a session's next request.
func (s *side) wait(u *session, at float64) {
	u.next = min(u.end, at+s.trial.noise.users.gap*s.rng.ExpFloat64())
}

// seek finds the session with the next request.
func (s *side) seek() {
	for i := range s.sessions {
		if s.sessions[i].next < s.sessions[s.soonest].next {
			s.soonest = i
		}
	}
}

// serveUsers sends the requests of users until an instant.
func (s *side) serveUsers(until float64) {
	for len(s.sessions) > 0 && s.sessions[s.soonest].next < until {
		u := &s.sessions[s.soonest]
		if u.next == u.end {
			s.begin(u, u.end)
		} else {
			all := s.trial.trace.rows
			s.enter(u.pod, u.next, row{prompt: u.prompt, output: all[s.rng.IntN(len(all))].output}, -1)
			s.wait(u, u.next)
		}
		s.seek()
	}
}

// send sends the next replayed request. Rows go round all pairs of pods, as those of a replay.
func (s *side) send(r row, at float64) {
	s.serveUsers(at)
	number, pods := len(s.rows), uint64(len(s.pods))
	pod := int(replay.OnSide(uint64(number), s.which == canary.Candidate, pods) % pods)
	s.rows, s.out = append(s.rows, sent{r, at, pod}), append(s.out, answered{})
	s.enter(s.pods[pod], at, r, number)
}

func (s *side) enter(p *pod, at float64, r row, number int) {
	tokens := float64(r.prompt) * orOne(s.effect.prefill) * p.clock.computed(at)
	tokens *= math.Exp(requestNoise * s.rng.NormFloat64())
	if f := s.effect.faster; f != nil {
		tokens *= f(r.prompt, s.rng)
	}
	p.inbox = append(p.inbox, job{at, tokens, r.output, number})
}

// run goes on until an instant. No request before it is sent later.
func (s *side) run(until float64) {
	s.serveUsers(until)
	for _, p := range s.pods {
		p.out = s.out
		p.run(until)
	}
}

// isAnswered says whether a row's answer has ended.
func (s *side) isAnswered(number int) bool { return s.out[number].last > 0 }

// request is an answered row as a client sees it. Each is asked for once, in order.
func (s *side) request(number int) canary.Request {
	r, got, n := s.rows[number], s.out[number], &s.trial.noise
	delay := networkTime
	if n.network > 0 {
		delay += n.network * math.Pow(1-s.rng.Float64(), -1/1.5)
	}
	ttft, e2e := got.first-r.at+delay, got.last-r.at+delay
	if e := &s.effect; e.rare > 0 && s.rng.Float64() < e.rare {
		ttft, e2e = e.times*ttft, e.times*e2e
	}
	if s.effect.halved > 0 && s.rng.Float64() < s.effect.halved {
		ttft, e2e = ttft/2, e2e-ttft/2
	}
	at, first, end := start.Add(seconds(r.at)), seconds(ttft), seconds(e2e)
	failing := n.errors + s.effect.errors
	if s.bursts.isOn(r.at, s.rng) {
		failing += n.burstBy
	}
	if failing > 0 && s.rng.Float64() < failing {
		return canary.Request{Sent: at, End: at.Add(first), Bad: true, Pod: uint16(r.pod + 1)}
	}
	q := canary.Request{Pod: uint16(r.pod + 1), Sent: at, First: at.Add(first), End: at.Add(end), TTFT: first, E2E: end}
	if r.output > 1 {
		q.TPOT = (end - first) / time.Duration(r.output-1)
	}
	return q
}

// start is the first instant of a rollout.
var start = time.Unix(0, 0)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
