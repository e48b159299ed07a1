package daemon

import (
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"
)

func (s section) repeat(mode string, closed bool) {
	r := s.in("repeat")
	r.key("mode", mode)
	switch {
	case mode == "loop" && !closed:
		r.key("align", "", "start", "wall_clock")
		r.key("every", "", "", "10s", "2s", "1h")
		r.key("gap", "", "1s")
		r.key("offset", "", "", "", "1500ms", "2h")
	case mode == "cron":
		r.key("cron", `"* * * * *"`, `"*/2 * * * *"`, `"0 3 29 2 *"`)
		r.key("timezone", "", "Europe/Berlin")
		r.key("overlap", "", "queue", "skip")
	}
	if mode != "loop" && s.roll()%8 == 7 {
		r.key("every", "10s")
	}
}

func (s section) stages() {
	n := s.roll() % 3
	if n == 0 {
		return
	}
	s.put("stages:")
	for i := range n {
		st := s.entry("stages", i)
		st.put("rate: " + of(s.dice, "10", "0.1", "40"))
		st.key("over", "", "2s", "500ms")
		if i < n-1 {
			st.key("hold", "", "1s")
		}
	}
}

func (s section) synthetic(arrival string) {
	y := s.in("synthetic")
	if s.roll()%3 == 1 {
		y.key("lengths", `"16,4:40;32,1:60"`, `"8,2:100"`)
	} else {
		y.key("input_tokens", "20", "1", "60.5")
		y.key("output_tokens", "3", "1", "")
	}
	y.key("system_tokens", "", "10")
	y.key("turns", "", "2", "3")
	if arrival != "users" { // with users, the rate sets the time between turns
		y.key("turn_delay", "", "50ms", "2s")
	}
	if arrival == "concurrency" {
		y.key("requests", "", "5", "20")
	} else {
		y.key("requests", "5", "1", "20")
	}
}

func (s section) dataset() {
	d := s.in("dataset")
	if s.roll()%2 == 0 {
		d.key("format", "bundled")
		return
	}
	var b strings.Builder
	for n := range 1 + s.roll()%4 {
		fmt.Fprintf(&b, `{"text": "one two %d"}`+"\n", n)
	}
	d.put("path: " + s.file(b.String()))
	d.key("format", "single_turn", "random_pool")
}

func (s section) trace() {
	t := s.in("trace")
	t.put("path: " + s.file(s.rows()))
	t.key("format", "", "mooncake")
	t.key("block_tokens", "", "16", "auto")
	t.key("from", "", "", "50ms", "1s")
	t.key("to", "", "", "2s", "10s")
	t.key("max_input", "", "", "20", "1")
	t.key("max_output", "", "", "2")
	t.key("max_context", "", "", "30")
	t.key("over_limit", "", "clip", "send")
}

// file returns a path for a text. Different texts have different paths, because a reload must not change a file that is
// being read.
func (v *invention) file(text string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	path := filepath.Join(v.dir, fmt.Sprintf("%x.jsonl", h.Sum64()))
	v.files[path] = text
	return path
}

// rows returns a small trace.
func (v *invention) rows() string {
	var b strings.Builder
	ms := 0
	for n := range 1 + v.roll()%12 {
		ms += of(v.dice, 0, 100, 1, 700, 3000)
		fmt.Fprintf(&b, `{"timestamp": %d, "output_length": %d`, ms, of(v.dice, 3, 1, 8))
		switch k := v.roll(); k % 4 {
		case 0, 1:
			fmt.Fprintf(&b, `, "input_length": %d`, of(v.dice, 10, 1, 40))
		case 2:
			fmt.Fprintf(&b, `, "input_length": 20, "hash_ids": [1, %d]`, k/4)
		default:
			fmt.Fprintf(&b, `, "text_input": "row %d \u00e9\n"`, n)
		}
		if session := of(v.dice, "", "a", "b"); session != "" {
			fmt.Fprintf(&b, `, "session_id": %q, "delay": %d`, session, of(v.dice, 0, 20, 1500))
		}
		b.WriteString("}\n")
	}
	return b.String()
}
