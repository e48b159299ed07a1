package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"replayd/internal/fault"
)

// promptKinds are the fields that can hold a row's prompt. A row has exactly one of them.
var promptKinds = [...]string{"input_length", "text_input", "messages", "payload"}

// read reads the fields of a row. A null field counts as absent, because AIPerf writes null for absent fields. Unknown
// fields are ignored, as in AIPerf.
func (d dialect) read(o *object, r *row) fault.List {
	if d.lengths {
		o.needs("timestamp", unitName(d.unit))
		o.needs("input_length", anInteger)
		o.needs("output_length", anInteger)
	} else {
		o.onePrompt()
	}
	r.InputTokens = o.length("input_length")
	if d.chats && string(o.value("output_length")) == "0" {
		r.failed = true
	} else {
		r.OutputTokens = o.length("output_length")
	}
	r.at, r.timed, r.unit = o.instant("timestamp", d.unit)
	r.Blocks = o.ids("hash_ids", r.Blocks)
	r.kinds = o.kinds
	if d.chats {
		o.chat(r)
	}
	if d.lengths {
		return o.faults
	}
	r.Delay, _ = o.time("delay", d.unit)
	r.Text = o.text("text_input", MaxLineBytes)
	r.Session = o.name("session_id")
	r.Messages = o.composite("messages", '[', "a list of messages")
	r.Tools = o.composite("tools", '[', "a list of tools")
	if r.Payload = o.composite("payload", '{', "an object with keys"); r.Payload != nil {
		var body struct{ Model json.RawMessage }
		if json.Unmarshal(r.Payload, &body) == nil {
			r.Model = modelOf(body.Model)
		}
	}
	r.Extra = o.composite("extra", '{', "an object with keys")
	o.takeHeaders(d.header, r)
	if d.graph {
		o.graph(r)
	}
	if o.value("hash_ids") != nil && o.value("input_length") == nil {
		o.fault("hash_ids", "none without input_length", shown(o.value("hash_ids")))
	}
	if o.value("tools") != nil && o.value("messages") == nil {
		o.fault("tools", "none without messages", shown(o.value("tools")))
	}
	return o.faults
}

// An object is a JSON object and the faults found in it.
type object struct {
	values  map[string]json.RawMessage
	members []member // in place of values: what split has found, with plain strings
	faults  fault.List
	kinds   idKinds // of the ids that were read
}

type member struct{ key, value []byte }

// read reads the object. It returns the fault of a text that is none.
func (o *object) read(text []byte, what string) fault.List {
	if err := json.Unmarshal(text, &o.values); err != nil {
		got := fault.Excerpt(text)
		if wrong := (*json.UnmarshalTypeError)(nil); !errors.As(err, &wrong) { // its text names a Go type
			got += fmt.Sprintf(" (%v)", err)
		}
		return fault.List{fault.New(what, "a JSON object", got)}
	}
	if o.values == nil {
		return fault.List{fault.New(what, "a JSON object", "null")}
	}
	return nil
}

// maxRowFaults is how many faults of one object are counted. A list of bad elements could have millions.
const maxRowFaults = 1000

func (o *object) fault(key, want, got string) { o.addFaults("", fault.List{fault.New(key, want, got)}) }

// addFaults adds faults of the values below a key.
func (o *object) addFaults(key string, found fault.List) {
	o.faults = append(o.faults, found.Under(key)[:min(len(found), maxRowFaults-len(o.faults))]...)
}

// list reads a list of at most so many elements. It keeps none of a longer one.
func (o *object) list(key, want string, most int) (list []json.RawMessage) {
	v := o.value(key)
	if v == nil {
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(v))
	if first, _ := in.Token(); first != json.Delim('[') {
		o.fault(key, want, shown(v))
		return nil
	}
	for in.More() {
		var element json.RawMessage
		if err := in.Decode(&element); err != nil || len(list) == most {
			o.fault(key, fmt.Sprintf("at most %d", most), "more")
			return nil
		}
		list = append(list, element)
	}
	if last, _ := in.Token(); last != json.Delim(']') { // in an object that split has read
		o.fault(key, want, shown(v))
	}
	return list
}

// value returns nil for a field that is absent or null.
func (o *object) value(key string) json.RawMessage {
	for _, m := range o.members {
		if string(m.key) == key {
			return m.value
		}
	}
	if v := o.values[key]; string(v) != "null" {
		return v
	}
	return nil
}

func (o *object) onePrompt() {
	has := make([]string, 0, len(promptKinds))
	for _, kind := range promptKinds {
		if o.value(kind) != nil {
			has = append(has, kind)
		}
	}
	switch len(has) {
	case 1:
	case 0:
		o.fault(promptKinds[0], "one of "+strings.Join(promptKinds[:], ", "), "none")
	default:
		o.fault(has[1], "one of "+strings.Join(promptKinds[:], ", "), strings.Join(has, " and "))
	}
}

func (o *object) needs(key, want string) {
	if o.value(key) == nil {
		o.fault(key, want, "none")
	}
}

// length reads a count of tokens; 0 means absent. It accepts 12.0 as an integer, because pandas writes integers so.
func (o *object) length(key string) int {
	v := o.value(key)
	if v == nil {
		return 0
	}
	n, want := lengthOf(string(v))
	if want != "" {
		o.fault(key, want, shown(v))
	}
	return n
}

// anInteger is wanted where a count of tokens stands.
const anInteger = "an integer ≥ 1"

// lengthOf reads a count of tokens. For other values it returns 0 and the fault.
func lengthOf(text string) (n int, want string) {
	v, err := strconv.ParseFloat(text, 64) // exact for every whole number up to MaxTokens
	switch {
	case err != nil || v != math.Trunc(v) || v < 1:
		return 0, anInteger
	case v > MaxTokens:
		return 0, fmt.Sprintf("at most %d tokens", MaxTokens)
	}
	return int(v), ""
}

// time reads a number of units, fractions allowed.
func (o *object) time(key string, unit time.Duration) (d time.Duration, ok bool) {
	v := o.value(key)
	if v == nil {
		return 0, false
	}
	if n, ok := nanos(string(v), unit); ok {
		return time.Duration(n), true
	}
	o.wrongTime(key, unit, string(v), v)
	return 0, true
}

func (o *object) wrongTime(key string, unit time.Duration, text string, v json.RawMessage) {
	want := unitName(unit) + " ≥ 0"
	if f, err := strconv.ParseFloat(text, 64); err == nil && f > 0 {
		want = fmt.Sprintf("%s ≤ %d", unitName(unit), maxMillis*int64(time.Millisecond)/int64(unit))
	}
	o.fault(key, want, shown(v))
}

// dated is the unit of an instant that is a date.
const dated time.Duration = -1

// instant reads an instant of a row, in nanoseconds: a number, in text or not, or a date. A number that can be no instant in
// the unit of the format, and only one in another, is read in that one, and unit says so; else it is 0.
func (o *object) instant(key string, format time.Duration) (at int64, timed bool, unit time.Duration) {
	v := o.value(key)
	if v == nil {
		return 0, false, 0
	}
	text := string(v)
	if v[0] == '"' {
		var unquoted string
		if json.Unmarshal(v, &unquoted) == nil {
			text = strings.TrimSpace(unquoted)
		}
	}
	switch at, isDate, ok := instantOf([]byte(text), format); {
	case ok && isDate:
		return at, true, dated
	case ok:
		return at, true, 0
	}
	for _, other := range []struct {
		unit  time.Duration
		above float64 // a year after 5100 in the next larger unit, and after 1973 in this one
	}{{time.Nanosecond, 1e17}, {time.Microsecond, 1e14}, {time.Millisecond, 1e11}} {
		if v, err := strconv.ParseFloat(text, 64); err == nil && v > other.above {
			if at, ok := nanos(text, other.unit); ok {
				return at, true, other.unit
			}
		}
	}
	o.wrongTime(key, format, text, v)
	return 0, true, 0
}

// name reads a text, or a number as it is written.
func (o *object) name(key string) string {
	if v := o.value(key); len(v) > 0 && len(v) <= MaxSessionBytes && v[0] != '"' {
		if _, kind := idOf(v); kind == numberIDs {
			return string(v)
		}
	}
	return o.text(key, MaxSessionBytes)
}

func (o *object) text(key string, limit int) string {
	v := o.value(key)
	if v == nil {
		return ""
	}
	if o.values == nil && v[0] == '"' && len(v)-len(`""`) <= limit {
		return string(v[1 : len(v)-1])
	}
	var s string
	switch err := json.Unmarshal(v, &s); {
	case err != nil:
		o.fault(key, "a string", shown(v))
	case s == "":
		o.fault(key, "a string that is not empty", shown(v))
	case len(s) > limit:
		o.fault(key, fmt.Sprintf("at most %d bytes", limit), strconv.Itoa(len(s)))
	}
	return s
}

// composite returns a list or an object verbatim, if it is not empty.
func (o *object) composite(key string, opens byte, want string) json.RawMessage {
	v := o.value(key)
	if v == nil {
		return nil
	}
	if v[0] != opens || len(bytes.TrimSpace(v[1:len(v)-1])) == 0 {
		o.fault(key, want, shown(v))
		return nil
	}
	return v
}

// shown formats a JSON value for a fault: verbatim if it is short, else cut and in quotes.
func shown(v json.RawMessage) string {
	if len(v) <= fault.ExcerptBytes {
		return string(v)
	}
	return fault.Excerpt(v)
}
