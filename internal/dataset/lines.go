package dataset

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"replayd/internal/fault"
	"replayd/internal/trace"
)

// lines reads one JSON object per line and skips blank lines.
func (b *builder) lines(in io.Reader, name string, read func(o object) error) error {
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 64<<10), MaxEntryBytes)
	for number := 1; !b.full() && scan.Scan(); number++ {
		if err := b.ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		line := scan.Bytes()
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		o := object{b: b, name: name, at: fmt.Sprintf("%s:%d", name, number), number: number}
		if err := json.Unmarshal(line, &o.values); err != nil || o.values == nil {
			b.want(o.at, "row", "a JSON object", fault.Excerpt(line))
			continue
		}
		if err := read(o); err != nil {
			return err
		}
		o.countUnused()
	}
	if errors.Is(scan.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%s: want lines of at most %d bytes, got a longer one", name, MaxEntryBytes)
	}
	err := scan.Err()
	if err == nil {
		_, err = io.Copy(io.Discard, in) // the hash covers the rest too
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// An object is the JSON object of a line. Unknown fields are counted.
type object struct {
	b      *builder
	name   string // of the file
	at     string // file:line, and the place in the line
	number int
	values map[string]json.RawMessage
}

// value returns nil for a field that is absent or null.
func (o object) value(key string) json.RawMessage {
	o.b.asked[key] = true
	if v := o.values[key]; string(v) != "null" {
		return v
	}
	return nil
}

// countUnused counts the fields that were not asked for in any object of the set. It comes after the object was read.
func (o object) countUnused() {
	for key, v := range o.values {
		if !o.b.asked[key] && string(v) != "null" {
			o.b.unused.Add(key)
		}
	}
}

func (o object) fault(field, want string) {
	o.b.want(o.at, field, want, fault.Excerpt(o.value(field)))
}

func (o object) text(key string, most int) string {
	v := o.value(key)
	if v == nil {
		return ""
	}
	var s string
	switch err := json.Unmarshal(v, &s); {
	case err != nil:
		o.fault(key, "a string")
	case s == "":
		o.fault(key, "a string that is not empty")
	case len(s) > most:
		o.fault(key, fmt.Sprintf("a string of at most %d bytes", most))
	}
	return s
}

// tokens reads a count; 0 means absent.
func (o object) tokens(key string) int {
	v := o.value(key)
	if v == nil {
		return 0
	}
	var n float64
	if json.Unmarshal(v, &n) != nil || n != float64(int(n)) || n < 1 || n > trace.MaxTokens {
		o.fault(key, fmt.Sprintf("an integer from 1 to %d", trace.MaxTokens))
		return 0
	}
	return int(n)
}

// millis reads a delay in milliseconds.
func (o object) millis(key string) time.Duration {
	v := o.value(key)
	if v == nil {
		return 0
	}
	var ms float64
	const most = 24 * time.Hour
	if json.Unmarshal(v, &ms) != nil || !(ms >= 0 && ms <= float64(most/time.Millisecond)) {
		o.fault(key, fmt.Sprintf("milliseconds from 0 to %d", most/time.Millisecond))
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// A turn is one message of a user, or of the given role.
type turn struct {
	texts  []string
	role   string
	answer string // the assistant's answer; "" if the set does not have it
	delay  time.Duration
	output int // tokens; 0: not known
	extra  json.RawMessage
}

// media are the fields of AIPerf's lines for media, which replayd refuses.
var media = []string{"image", "images", "audio", "audios", "video", "videos"}

// turn reads the fields of AIPerf's SingleTurn (aiperf src/aiperf/dataset/loader/models.py, 2026), and the fields
// prompt and output_tokens of vllm bench serve --dataset-name custom.
func (o object) turn() turn {
	for _, key := range media {
		if o.value(key) != nil {
			o.fault(key, "text alone")
		}
	}
	t := turn{
		delay: o.millis("delay"), output: max(o.tokens("output_length"), o.tokens("output_tokens")),
		role: cmp.Or(o.text("role", 64), "user"), answer: o.text("answer", MaxEntryBytes),
	}
	if v := o.value("extra"); v != nil {
		if v[0] != '{' {
			o.fault("extra", "an object")
		}
		t.extra = bytes.Clone(v)
	}
	if o.value("timestamp") != nil {
		o.b.times++
	}
	for _, key := range []string{"text", "prompt"} {
		if s := o.text(key, MaxEntryBytes); s != "" {
			t.texts = append(t.texts, s)
		}
	}
	t.texts = append(t.texts, o.texts("texts")...)
	if len(t.texts) == 0 {
		o.b.want(o.at, "text", "a text", "none")
	}
	if t.output == 0 && t.answer != "" {
		t.output = o.b.count(o.at, "answer", t.answer)
	}
	return t
}

// texts reads a list of strings, or a list of objects with a list of strings as contents.
func (o object) texts(key string) []string {
	v := o.value(key)
	if v == nil {
		return nil
	}
	var list []string
	if json.Unmarshal(v, &list) != nil {
		var named []struct {
			Contents []string `json:"contents"`
		}
		if json.Unmarshal(v, &named) != nil {
			o.fault(key, "a list of strings, or of objects with contents")
			return nil
		}
		list = nil
		for _, n := range named {
			list = append(list, n.Contents...)
		}
	}
	if slices.Contains(list, "") {
		o.fault(key, "strings that are not empty")
	}
	return list
}
