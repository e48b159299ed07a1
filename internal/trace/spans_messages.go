package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"replayd/internal/trace/ids"
)

// maxPromptBytes leaves room in a line of a trace for what a row has beside its messages.
const maxPromptBytes = MaxLineBytes - 256<<10

// A spanPrompt is what a span says of its prompt.
type spanPrompt struct {
	messages  json.RawMessage // as the chat API has them; nil: there are none, or they are not certain
	given     bool            // there are some
	tools     json.RawMessage
	toolsLeft bool     // there are some that are not certain
	thoughts  int      // parts with the model's reasoning, which are left out
	history   []uint64 // keys of the assistant's messages
}

// A spanMessage is a message of the conventions for GenAI, of OpenAI's or of Anthropic's API.
type spanMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Parts      []spanPart      `json:"parts"`
	ToolCalls  []spanPart      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

type spanPart struct {
	Type      string          `json:"type"`
	Text      json.RawMessage `json:"text"`
	Content   json.RawMessage `json:"content"`
	Response  json.RawMessage `json:"response"`
	Result    json.RawMessage `json:"result"`
	ID        string          `json:"id"`
	ToolUseID string          `json:"tool_use_id"`
	spanFunction
	Function *spanFunction `json:"function"`
}

type spanFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`
}

// A chatMessage is a message as the chat API has it.
type chatMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content,omitempty"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON in a text
}

// prompt reads the messages and the tools of a span. Messages that are not certain are no fault: the prompt can be made
// up.
func (o *object) prompt() (p spanPrompt) {
	list, key, ok := o.messages("gen_ai.input.messages", "gen_ai.prompt", "user")
	p.given = key != ""
	if !p.given || !ok {
		return p
	}
	if v := inText(o.value("gen_ai.system_instructions")); v != nil {
		list = slices.Insert(list, 0, spanMessage{Role: "system", Content: v})
	}
	var all []chatMessage
	for i := range list {
		messages, thoughts, certain := list[i].chat()
		if !certain {
			return p
		}
		all = append(all, messages...)
		p.thoughts += thoughts
	}
	for i := range all {
		if all[i].Role == "assistant" {
			p.history = append(p.history, all[i].keys()...)
		}
	}
	p.history = slices.Clone(p.history[max(0, len(p.history)-maxHistory):])
	p.messages = encoded(all)
	p.tools, p.toolsLeft = o.definitions()
	if n := len(p.messages) + len(p.tools); n > maxPromptBytes {
		o.fault(key, fmt.Sprintf("at most %d bytes with the tools", maxPromptBytes), fmt.Sprint(n))
	}
	return p
}

// messages returns the messages of an attribute by its newer or its older name, and the name that it has; "": none. A
// text that is no JSON is one message of a role.
func (o *object) messages(newer, older, role string) (list []spanMessage, key string, ok bool) {
	for _, key := range []string{newer, older} {
		v := inText(o.value(key))
		if v == nil {
			continue
		}
		if key == older && v[0] == '"' {
			return []spanMessage{{Role: role, Content: v}}, key, true
		}
		err := json.Unmarshal(v, &list)
		return list, key, err == nil && len(list) > 0
	}
	list, ok = o.indexed(older)
	if len(list) == 0 {
		return nil, "", false
	}
	return list, older + ".0.content", ok
}

// inText returns JSON that stands in a text, or the value itself.
func inText(v json.RawMessage) json.RawMessage {
	var text string
	if len(v) == 0 || v[0] != '"' || json.Unmarshal(v, &text) != nil {
		return v
	}
	inner := json.RawMessage(strings.TrimSpace(text))
	if len(inner) > 0 && (inner[0] == '[' || inner[0] == '{') && json.Valid(inner) {
		return inner
	}
	return v
}

// indexed reads OpenLLMetry's attributes, such as gen_ai.prompt.0.content and gen_ai.prompt.0.tool_calls.0.name.
func (o *object) indexed(prefix string) (list []spanMessage, ok bool) {
	for i := 0; ; i++ {
		at := fmt.Sprintf("%s.%d.", prefix, i)
		m := spanMessage{Role: o.word(at + "role"), Content: o.value(at + "content"), ToolCallID: o.word(at + "tool_call_id")}
		if parts := inText(m.Content); len(parts) > 0 && parts[0] == '[' {
			m.Content = parts
		}
		for call := 0; ; call++ {
			of := fmt.Sprintf("%stool_calls.%d.", at, call)
			if o.word(of+"name") == "" {
				break
			}
			m.ToolCalls = append(m.ToolCalls, spanPart{
				ID: o.word(of + "id"), spanFunction: spanFunction{Name: o.word(of + "name"), Arguments: o.value(of + "arguments")},
			})
		}
		if m.Role == "" && m.Content == nil && m.ToolCalls == nil {
			return list, true
		}
		list = append(list, m)
	}
}

// chat converts a message. A message with results of tools becomes one for each of them, and one for the rest. certain
// is false if the chat API has no such message.
func (m *spanMessage) chat() (list []chatMessage, thoughts int, certain bool) {
	parts, certain := m.parts()
	out := chatMessage{Role: m.Role, ToolCallID: m.ToolCallID}
	if m.Role == "developer" { // many engines' templates know no such role; inference-perf changes it, too
		out.Role = "system"
	}
	text, hasText := "", false
	for i := range parts {
		p := &parts[i]
		switch p.Type {
		case "text", "input_text", "output_text":
			s, ok := textOf(false, p.Text, p.Content)
			text, hasText, certain = text+s, true, certain && ok
		case "tool_call", "tool_use":
			call, ok := p.call()
			out.ToolCalls, certain = append(out.ToolCalls, call), certain && ok
		case "tool_call_response", "tool_result":
			s, ok := textOf(true, p.Response, p.Result, p.Content)
			id := p.ID + p.ToolUseID
			list = append(list, chatMessage{Role: "tool", Content: &s, ToolCallID: id})
			certain = certain && ok && id != ""
		case "reasoning", "thinking":
			thoughts++
		default:
			certain = false
		}
	}
	switch {
	case list != nil && (out.Role == "tool" || out.Role == "user"):
		certain = certain && out.ToolCalls == nil
		if !hasText {
			return list, thoughts, certain
		}
		out.Role, out.ToolCallID = "user", ""
	case list != nil:
		certain = false
	case out.Role == "tool":
		certain = certain && out.ToolCalls == nil && out.ToolCallID != ""
	case out.Role == "assistant":
		certain = certain && out.ToolCallID == ""
	case out.Role == "system", out.Role == "user":
		certain = certain && out.ToolCalls == nil && out.ToolCallID == ""
	default:
		certain = false
	}
	if hasText || out.ToolCalls == nil {
		out.Content = &text
	}
	return append(list, out), thoughts, certain
}

// parts returns all of a message's content in one list.
func (m *spanMessage) parts() (parts []spanPart, ok bool) {
	ok = true
	switch kindOf(m.Content) {
	case "none", "null":
	case "a string":
		parts = []spanPart{{Type: "text", Text: m.Content}}
	case "a list":
		var list []json.RawMessage
		ok = json.Unmarshal(m.Content, &list) == nil
		for _, v := range list {
			p := spanPart{Type: "text", Text: v}
			if v[0] != '"' {
				p = spanPart{}
				ok = ok && json.Unmarshal(v, &p) == nil
			}
			parts = append(parts, p)
		}
	default:
		ok = false
	}
	parts = append(parts, m.Parts...)
	for _, call := range m.ToolCalls {
		call.Type = "tool_call"
		parts = append(parts, call)
	}
	return parts, ok
}

// call converts a call of a tool. One without an id cannot be answered.
func (p *spanPart) call() (c chatCall, certain bool) {
	f := &p.spanFunction
	if p.Function != nil {
		f = p.Function
	}
	arguments := f.Arguments
	if arguments == nil {
		arguments = f.Input
	}
	c = chatCall{ID: p.ID, Type: "function", Function: chatFunction{Name: f.Name, Arguments: "{}"}}
	switch kindOf(arguments) {
	case "none", "null":
	case "a string":
		if json.Unmarshal(arguments, &c.Function.Arguments) != nil {
			return c, false
		}
	default:
		c.Function.Arguments = compacted(arguments)
	}
	return c, p.ID != "" && f.Name != ""
}

// textOf returns the text of the first value that is there: a string, or a list of parts with texts. Of a result of a
// tool it is else the value's JSON.
func textOf(result bool, values ...json.RawMessage) (text string, ok bool) {
	i := slices.IndexFunc(values, func(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" })
	if i < 0 {
		return "", result
	}
	v := values[i]
	if json.Unmarshal(v, &text) == nil {
		return text, true
	}
	var list []struct{ Text *string }
	if json.Unmarshal(v, &list) != nil {
		return compacted(v), result
	}
	for _, part := range list {
		if part.Text == nil {
			return compacted(v), result
		}
		text += *part.Text
	}
	return text, true
}

func compacted(v json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}

func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil { // texts always encode
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

// definitions returns the tools of a request as the chat API has them. left is true if one of them is not certain.
func (o *object) definitions() (tools json.RawMessage, left bool) {
	v := inText(o.value("gen_ai.tool.definitions"))
	if v == nil {
		return nil, false
	}
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		return nil, true
	}
	for i, text := range list {
		tool, function := object{}, object{}
		switch {
		case !tool.decode(text), tool.word("type") != "function":
			return nil, true
		case function.decode(tool.value("function")) && function.word("name") != "":
		case tool.word("name") != "":
			delete(tool.values, "type")
			list[i] = encoded(map[string]any{"type": "function", "function": tool.values})
		default:
			return nil, true
		}
	}
	if len(list) == 0 {
		return nil, false
	}
	return encoded(list), false
}

// A spanAnswer is what a span says of its answer.
type spanAnswer struct {
	keys  []uint64
	chars int
}

// answer reads the answer, of several the first one.
func (o *object) answer() (n spanAnswer) {
	var out chatMessage
	list, _, ok := o.messages("gen_ai.output.messages", "gen_ai.completion", "assistant")
	if ok && len(list) > 0 {
		list[0].Role = "assistant"
		messages, _, _ := list[0].chat()
		out = messages[len(messages)-1]
	}
	for _, key := range []string{"gen_ai.output.text", "gen_ai.output"} {
		if text := o.word(key); out.Role == "" && text != "" {
			out = chatMessage{Role: "assistant", Content: &text}
		}
	}
	if out.Content != nil {
		n.chars = utf8.RuneCountInString(*out.Content)
	}
	for _, c := range out.ToolCalls {
		n.chars += utf8.RuneCountInString(c.Function.Name) + utf8.RuneCountInString(c.Function.Arguments)
	}
	if n.chars > 0 {
		n.keys = out.keys()
	}
	if calls := len(out.ToolCalls); calls > 0 && len(n.keys) > calls { // all have ids
		n.keys = n.keys[1:]
	} else {
		n.keys = n.keys[:min(1, len(n.keys))]
	}
	return n
}

// keys returns one key of all of a message's text and calls of tools, and then one of each call's id.
func (m *chatMessage) keys() []uint64 {
	var all strings.Builder
	if m.Content != nil {
		all.WriteString(*m.Content)
	}
	list := []uint64{0}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		fmt.Fprintf(&all, "\x00%s\x00%s", c.Function.Name, compacted(json.RawMessage(c.Function.Arguments)))
		if c.ID != "" {
			list = append(list, ids.Hash("\x01"+c.ID))
		}
	}
	list[0] = ids.Hash("\x02" + all.String())
	return list
}
