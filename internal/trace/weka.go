package trace

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"replayd/internal/fault"
)

// Weka's format (callanjfox/kv-cache-tester, docs/trace_replay_tester.md, as of 2026) is one JSON object a session, in a file of
// its own or in a line. AIPerf, guidellm and SGLang read it too. Times are seconds from the start of the session. A block that is
// not full, at the end of a prompt, has no id. The model, the types, the reason of the end and think_time are not read:
// think_time counts from the last answer whose time is known, and so may be longer than the time between two requests.

// maxWekaCalls bounds the requests of a session, with those of its sub-agents. A request of 26 bytes takes a kilobyte of
// memory.
const maxWekaCalls = 1 << 16

// wekaBlock is how many tokens an id stands for if the session does not say.
const wekaBlock = 64

// A wekaCall is one request of a session or one of its sub-agents.
type wekaCall struct {
	at            time.Duration
	took          time.Duration // until the answer ended
	timed         bool          // took is known
	input, output int           // tokens
	ids           []uint64
	agent         *wekaAgent // not nil: the entry is a sub-agent and not a call
}

type wekaAgent struct {
	id     string
	kind   string
	took   time.Duration
	timed  bool // took is known
	prefix int  // tokens of its tools and system prompt
	calls  []wekaCall
}

// A wekaSession is one session as its object says it.
type wekaSession struct {
	id     string
	block  int
	global bool // ids mean the same in all sessions
	prefix int  // tokens of its tools and system prompt
	calls  []wekaCall
	kinds  idKinds
}

func readWeka(text []byte) (s wekaSession, found fault.List) {
	o := object{}
	if found := o.read(text, "session"); found != nil {
		return s, found
	}
	s.id = o.text("id", MaxSessionBytes)
	o.needs("id", "a string")
	s.block = cmp.Or(o.length("block_size"), wekaBlock)
	switch scope := o.text("hash_id_scope", MaxSessionBytes); scope {
	case "", "local", "per_context":
	case "global":
		s.global = true
	default:
		o.fault("hash_id_scope", "local or global", shown(o.value("hash_id_scope")))
	}
	s.prefix = o.count("tool_tokens") + o.count("system_tokens")
	s.calls = o.wekaCalls(s.block, maxWekaCalls, true)
	if len(s.calls) == 0 && len(o.faults) == 0 {
		o.fault("requests", "at least one", "none")
	}
	s.kinds = o.kinds
	return s, o.faults
}

// count reads a count that may be 0.
func (o *object) count(key string) int {
	v := o.value(key)
	if v == nil || string(v) == "0" || string(v) == "0.0" {
		return 0
	}
	before := len(o.faults)
	n := o.length(key)
	for i := before; i < len(o.faults); i++ {
		o.faults[i].Want = strings.Replace(o.faults[i].Want, "≥ 1", "≥ 0", 1)
	}
	return n
}

// wekaCalls reads the field requests, at most so many with those of sub-agents. A sub-agent has no sub-agents.
func (o *object) wekaCalls(block, most int, agents bool) []wekaCall {
	o.needs("requests", "a list of requests")
	list := o.list("requests", "a list of requests", most)
	most -= len(list)
	calls := make([]wekaCall, len(list))
	latest := time.Duration(0)
	for i, text := range list {
		e := object{}
		if found := e.read(text, ""); found != nil {
			o.addFaults(fmt.Sprintf("requests[%d]", i), found)
			continue
		}
		c := &calls[i]
		c.at, _ = e.time("t", time.Second)
		e.needs("t", "seconds ≥ 0")
		switch kind := e.text("type", MaxSessionBytes); {
		case kind == "n", kind == "s", kind == "": // guidellm needs no type
			e.wekaCall(c, block)
			if c.at < latest {
				want := fmt.Sprintf("≥ %s, that of the request before", inUnits(latest, time.Second))
				e.fault("t", want, inUnits(c.at, time.Second))
			}
			latest = max(latest, c.at)
		case kind == "subagent" && agents:
			c.agent = e.wekaAgent(block, most)
			most -= len(c.agent.calls)
		case agents:
			e.fault("type", "n, s or subagent", strconv.Quote(kind))
		default:
			e.fault("type", "n or s in a sub-agent", strconv.Quote(kind))
		}
		o.addFaults(fmt.Sprintf("requests[%d]", i), e.faults)
		o.kinds |= e.kinds
	}
	return calls
}

func (o *object) wekaCall(c *wekaCall, block int) {
	c.input = o.length("in")
	o.needs("in", anInteger)
	// A request without output tokens asks for one, as in AIPerf.
	c.output = max(1, o.count("out"))
	c.took, c.timed = o.seconds("api_time")
	before := len(o.faults)
	if c.ids = o.ids("hash_ids", nil); len(o.faults) > before {
		return
	}
	if most := blocksOf(c.input, block); c.input > 0 && len(c.ids) > most {
		o.fault("hash_ids", fmt.Sprintf("at most %d ids for %d tokens in blocks of %d", most, c.input, block), strconv.Itoa(len(c.ids)))
	}
}

func (o *object) wekaAgent(block, most int) *wekaAgent {
	a := &wekaAgent{id: o.text("agent_id", MaxSessionBytes), kind: o.text("subagent_type", MaxSessionBytes)}
	o.needs("agent_id", "a string")
	a.prefix = o.count("tool_tokens") + o.count("system_tokens")
	took, ok := o.seconds("duration_ms")
	a.took, a.timed = took/1000, ok
	a.calls = o.wekaCalls(block, most, false)
	return a
}

// seconds reads a time that may be missing. AIPerf takes a negative one for 0.
func (o *object) seconds(key string) (d time.Duration, ok bool) {
	if v := o.value(key); v != nil && v[0] == '-' {
		if _, err := strconv.ParseFloat(string(v), 64); err == nil {
			return 0, true
		}
	}
	return o.time(key, time.Second)
}
