package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"replayd/internal/fault"
)

// A document is what a configuration file says.
type document struct {
	keys  map[string]any // maps, lists, nil for null, and written
	lines map[string]int // of each key and each entry of a list, by its path
}

// A written is a scalar that is not null: its text in the file, and what YAML takes it for. A key for texts takes the text, so that 00123,
// 1e3 and 2026-01-02 stay what they are.
type written struct {
	Text  string // exported for koanf, which copies values
	Value any
}

// readDocument reads YAML to its end. Empty documents are left out, and so are keys at the top that begin with x-, which are for anchors.
func readDocument(text []byte) (d document, err error) {
	if n := directive(text); n > 0 {
		return d, fmt.Errorf("yaml: line %d: want no directive: remove the line, YAML 1.2 is what is read", n)
	}
	var root *yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var one yaml.Node
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return d, err
		}
		if only := one.Content[0]; only.Kind == yaml.ScalarNode && only.ShortTag() == "!!null" && only.Value == "" {
			continue
		}
		if root != nil {
			return d, fmt.Errorf("yaml: line %d: want one document, got a second one: remove the line --- if both belong together",
				one.Content[0].Line)
		}
		root = one.Content[0]
	}
	d.lines = map[string]int{}
	if root == nil {
		return d, nil
	}
	// This refuses keys that are there twice, and aliases that make too much of a small file.
	if err := root.Decode(&d.keys); err != nil {
		return d, err
	}
	if err := checkTags(root); err != nil {
		return d, err
	}
	d.keys, _ = d.value(root, "").(map[string]any)
	for key := range d.keys {
		if strings.HasPrefix(key, "x-") {
			delete(d.keys, key)
		}
	}
	return d, nil
}

// directive returns the line of the first directive before a document; 0: there is none.
func directive(text []byte) (line int) {
	for one := range bytes.Lines(text) {
		line++
		switch one = bytes.TrimSpace(bytes.TrimPrefix(one, []byte("\ufeff"))); {
		case len(one) > 0 && one[0] == '%':
			return line
		case len(one) > 0 && one[0] != '#':
			return 0
		}
	}
	return 0
}

// knownTags are those of YAML's own types, which values have without writing them.
var knownTags = []string{"!!null", "!!bool", "!!str", "!!int", "!!float", "!!timestamp", "!!seq", "!!map", "!!merge"}

func checkTags(n *yaml.Node) error {
	if tag := n.ShortTag(); n.Kind != yaml.AliasNode && !slices.Contains(knownTags, tag) {
		return fmt.Errorf("yaml: line %d: want a value without a tag, got %s", n.Line, tag)
	}
	for _, child := range n.Content {
		if err := checkTags(child); err != nil {
			return err
		}
	}
	return nil
}

// value returns what a node says, at a path, and notes the lines.
func (d *document) value(n *yaml.Node, at string) any {
	switch n.Kind {
	case yaml.AliasNode:
		return d.value(n.Alias, at)
	case yaml.MappingNode:
		keys := map[string]any{}
		d.merge(keys, n, at, true)
		return keys
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, one := range n.Content {
			key := fmt.Sprintf("%s[%d]", at, i)
			d.lines[key] = one.Line
			list[i] = d.value(one, key)
		}
		return list
	}
	w := written{Text: n.Value}
	_ = n.Decode(&w.Value) // it was decoded before
	if w.Value == nil {
		return nil
	}
	return w
}

// merge adds the keys of a mapping, and after them those of its merge keys, which replace none. own says that it is the mapping itself.
func (d *document) merge(keys map[string]any, n *yaml.Node, at string, own bool) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.SequenceNode {
		for _, one := range n.Content {
			d.merge(keys, one, at, false)
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, path := n.Content[i], fault.Join(at, n.Content[i].Value)
		if _, there := keys[name.Value]; there || name.ShortTag() == "!!merge" {
			continue
		}
		if own {
			d.lines[path] = name.Line
		}
		keys[name.Value] = d.value(n.Content[i+1], path)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() == "!!merge" {
			d.merge(keys, n.Content[i+1], at, false)
		}
	}
}

// inJSON returns a value as encoding/json writes it: numbers digit by digit as they are in the file. It fails for what JSON does not have.
func inJSON(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, one := range v {
			value, err := inJSON(one)
			if err != nil {
				return nil, fault.At(key, err)
			}
			all[key] = value
		}
		return all, nil
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			value, err := inJSON(one)
			if err != nil {
				return nil, fault.At(fmt.Sprintf("[%d]", i), err)
			}
			all[i] = value
		}
		return all, nil
	case written:
		switch value := v.Value.(type) {
		case bool:
			return value, nil
		case int, int64, uint64, float64:
			if !json.Valid([]byte(v.Text)) {
				return nil, fmt.Errorf("want a number as JSON writes it, or a text in quotes, got %s", v.Text)
			}
			return json.Number(v.Text), nil
		}
		return v.Text, nil
	}
	return v, nil
}

// inYAML is the reverse of document.value: a node with the texts of the file.
func inYAML(v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for key, one := range v {
			n.Content = append(n.Content, textNode(key), inYAML(one))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, one := range v {
			n.Content = append(n.Content, inYAML(one))
		}
		return n
	case written:
		if _, text := v.Value.(string); text {
			return textNode(v.Text)
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.Text}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}
}
