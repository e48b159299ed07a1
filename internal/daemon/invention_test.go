package daemon

import (
	"fmt"
	"strings"
)

// A dice makes choices from a fuzzer's bytes, one byte per choice. When no bytes are left, it makes the first choice.
type dice struct{ bytes []byte }

func (d *dice) roll() int {
	if len(d.bytes) == 0 {
		return 0
	}
	v := int(d.bytes[0])
	d.bytes = d.bytes[1:]
	return v
}

func of[T any](d *dice, choices ...T) T { return choices[d.roll()%len(choices)] }

// An invention is the text of a configuration whose keys mostly go together, and the files that the text names.
type invention struct {
	*dice
	dir   string
	text  strings.Builder
	lines int
	sound bool              // no faults on purpose
	wrong []string          // LINE: PATH of each fault made on purpose
	files map[string]string // path to text
	bare  []bool            // by target: its answers are not streamed
	blind []bool            // by target: it is not scraped
}

// A section is a mapping of the configuration to which keys are added.
type section struct {
	*invention
	path   string // with a final dot
	indent string
	dash   *bool // the next line begins a list entry
}

func (v *invention) line(text string) {
	v.text.WriteString(text + "\n")
	v.lines++
}

func (s section) put(line string) {
	if *s.dash {
		*s.dash = false
		s.line(s.indent[2:] + "- " + line)
		return
	}
	s.line(s.indent + line)
}

// key writes a key with one of the values; the value "" leaves the key out. 2 of 256 choices write a fault.
func (s section) key(name string, values ...string) {
	switch b := s.roll(); {
	case b == 255 && !s.sound:
		s.put(name + ": {no_such: 1}")
		s.wrong = append(s.wrong, fmt.Sprintf("%d: %s%s", s.lines, s.path, name))
	case b == 254 && !s.sound:
		s.put("no_such_" + name + ": 1")
		s.wrong = append(s.wrong, fmt.Sprintf("%d: %sno_such_%s: unknown key", s.lines, s.path, name))
	case values[b%len(values)] != "":
		s.put(name + ": " + values[b%len(values)])
	}
}

// in begins a section under a key.
func (s section) in(name string) section {
	s.put(name + ":")
	s.path, s.indent, s.dash = s.path+name+".", s.indent+"  ", new(bool)
	return s
}

// entry begins the section of a list entry.
func (s section) entry(list string, at int) section {
	begins := true
	return section{s.invention, fmt.Sprintf("%s%s[%d].", s.path, list, at), s.indent + "  ", &begins}
}

// invent makes a configuration of up to three workloads, with their files in dir.
func invent(d *dice, dir string, sound bool) *invention {
	v := &invention{dice: d, dir: dir, sound: sound, files: map[string]string{}}
	top := section{v, "", "", new(bool)}
	top.key("drain", "", "2s", "0s", "1m")
	targets := 1 + of(d, 0, 0, 1)
	top.put("targets:")
	for i := range targets {
		t := top.entry("targets", i)
		t.put(fmt.Sprintf("name: t%d", i))
		t.target()
	}
	top.put("workloads:")
	for i := range 1 + of(d, 0, 1, 2) {
		w := top.entry("workloads", i)
		w.put(fmt.Sprintf("name: w%d", i))
		to := of(d, 0, 1) % targets
		w.put(fmt.Sprintf("target: t%d", to))
		w.workload(to)
	}
	return v
}

func (s section) target() {
	s.put("url: http://engine")
	s.key("api", "", "completions", "chat")
	stream := of(s.dice, "", "false", "true")
	s.key("stream", stream)
	s.key("model", "", "sim")
	s.key("output", "", "max", "free")
	if s.roll()%2 == 1 {
		s.put("extra_body: {a.b: [1.5, null], seed: 7}")
	}
	s.key("idle", "", "10s", "1ms")
	t := s.in("timeouts")
	t.key("connect", "", "100ms", "0s")
	t.key("first_token", "", "90ms", "0s", "2s")
	t.key("stall", "2s", "5ms", "1s")
	t.key("total", "20s", "200ms", "5s")
	m := s.in("metrics")
	interval := of(s.dice, "", "0s", "1s")
	m.key("interval", interval)
	s.bare, s.blind = append(s.bare, stream == "false"), append(s.blind, interval == "0s")
}

func (s section) workload(to int) {
	arrival := of(s.dice, "exact", "constant", "poisson", "concurrency", "gamma", "users", "spread")
	timed := arrival == "exact" || arrival == "spread"
	closed := arrival == "concurrency"
	s.key("arrival", arrival)
	switch rows := s.roll() % 4; {
	case rows < 2 || timed:
		s.trace()
	case rows == 2:
		s.dataset()
	default:
		s.synthetic(arrival)
	}
	mode := of(s.dice, "once", "loop", "cron")
	if closed && mode == "cron" {
		mode = "loop"
	}
	s.repeat(mode, closed)
	switch {
	case timed:
		s.key("speed", "", "2", "0.5", "100")
	case arrival == "users":
		s.key("rate", "2", "20")
		s.key("users", "1", "3")
	case !closed:
		s.key("rate", "5", "20", "0.5", "60")
		s.stages()
	}
	if arrival == "gamma" {
		s.key("burstiness", "", "0.1", "20")
	}
	if closed {
		s.key("lanes", "2", "1", "16")
	} else {
		s.key("lanes", "", "1", "2", "4")
	}
	s.key("overload", "", "drop")
	s.key("max_wait", "", "0s", "100ms")
	of := s.roll() % 4
	shard := s.in("shard")
	shard.key("of", []string{"", "1", "2", "3"}[of])
	shard.key("index", "", []string{"", "0", "1", "2"}[of])
	s.in("warmup").key("requests", "", "", "", "1", "3")
	if s.roll()%3 == 1 {
		c := s.in("cancel")
		c.key("ratio", "0.5", "1")
		c.key("after", "", "30ms", "1s")
	}
	s.rest(to)
}

// rest writes the keys that go with any other keys.
func (s section) rest(to int) {
	p := s.in("prompt")
	p.key("form", "", "", "tokens")
	p.key("words", "", "all")
	p.key("seed", "", "7")
	p.key("salt", "", "none", "session", "fixed:a")
	p.key("calibrate", "", "false")
	p.key("history", "", "true")
	l := s.in("slo")
	if !s.bare[to] {
		l.key("ttft", "", "60ms")
		l.key("tpot", "", "5ms")
	}
	l.key("e2e", "", "100ms")
	l.key("objective", "", "0.5")
	g := s.in("guard")
	if !s.blind[to] {
		g.key("waiting", "", "", "", "", "", "2")
		g.key("kv_cache_usage", "", "", "", "", "", "0.5")
	}
	g.key("error_ratio", "", "0.1", "1")
	g.key("on_missing_metrics", "", "go")
	g.key("resume_after", "", "0s", "1s")
	b := s.in("budget")
	b.key("requests_per_minute", "", "", "3", "40")
	b.key("prompt_tokens_per_hour", "", "", "100", "1")
	b.key("output_tokens_per_day", "", "", "", "1", "30")
	m := s.in("request")
	m.key("cache_salt", "", "loop", "fixed:a")
	m.key("user", "", "replayd")
	if s.roll()%2 == 1 {
		m.put("headers: {X-Tenant: canary}")
	}
}
