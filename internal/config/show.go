package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	commoncfg "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"

	"replayd/internal/measure"
	"replayd/internal/scalar"
	"replayd/internal/secret"
)

// Show returns the configuration as YAML with all defaults, in the order of docs/reference/configuration.md. Load can
// read it. Secrets are masked: those of prometheus/common's types, values of secret-like names in extra_body,
// http_headers and request.headers, and user and password in URLs.
func (c Config) Show() ([]byte, error) {
	root, err := sectionNode(reflect.ValueOf(c))
	if err != nil {
		return nil, err
	}
	hideUsers(root)
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return text.Bytes(), e.Close()
}

// sectionNode returns a struct as a mapping by its koanf tags. Lists of sections come last.
func sectionNode(v reflect.Value) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	lists, err := addKeys(n, v)
	n.Content = append(n.Content, lists...)
	return n, err
}

// addKeys adds the keys of a struct to a mapping, those of its embedded parts in their place. It returns its lists.
func addKeys(n *yaml.Node, v reflect.Value) (lists []*yaml.Node, err error) {
	for field, value := range v.Fields() {
		key, ok := keyOf(field)
		if !ok {
			continue
		}
		if bounds, ok := value.Interface().(Bounds); ok { // bounds are keys of the same section
			n.Content = append(n.Content, bounds.show()...)
			continue
		}
		if field.Anonymous {
			more, err := addKeys(n, value)
			if err != nil {
				return nil, err
			}
			lists = append(lists, more...)
			continue
		}
		child, err := valueNode(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if child.Kind == yaml.SequenceNode {
			lists = append(lists, textNode(key), child)
		} else {
			n.Content = append(n.Content, textNode(key), child)
		}
	}
	return lists, nil
}

// show returns every quantity under replayd's name, with "" for those without a bound.
func (b Bounds) show() (keys []*yaml.Node) {
	levels := b.Levels()
	for _, q := range measure.Quantities() {
		value := textNode("")
		if limit := levels.Limit(q); limit > 0 {
			value = &yaml.Node{Kind: yaml.ScalarNode, Value: measure.Bound{Quantity: q, Limit: limit}.Text(limit)}
		}
		keys = append(keys, textNode(q.String()), value)
	}
	return keys
}

// valueNode returns one value of the configuration as a YAML node.
func valueNode(v reflect.Value) (*yaml.Node, error) {
	value := v.Interface()
	if d, ok := value.(time.Duration); ok {
		value = scalar.Duration(d)
	}
	switch value := value.(type) {
	case nil:
		return encodedNode(nil)
	case HTTP:
		return clientNode(value)
	case yaml.Marshaler: // secrets and URLs of prometheus/common
		return encodedNode(value)
	case encoding.TextMarshaler:
		t, err := value.MarshalText()
		if len(t) == 0 {
			return textNode(""), err
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Value: string(t)}, err
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: string(value)}, nil
	case map[string]any:
		return mapNode(value)
	case map[string]string:
		all := make(map[string]any, len(value))
		for name, text := range value {
			all[name] = text
		}
		return mapNode(all)
	}
	switch v = reflect.ValueOf(value); v.Kind() {
	case reflect.Struct:
		return sectionNode(v)
	case reflect.Slice:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, one := range v.Seq2() {
			child, err := valueNode(one)
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, child)
		}
		return list, nil
	case reflect.String:
		return textNode(v.String()), nil
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		return encodedNode(v.Interface())
	}
	return nil, fmt.Errorf("a %v cannot be shown", v.Type())
}

// clientNode returns the http section as prometheus/common writes it, with its secrets masked. prometheus/common does
// not mask header values and OAuth 2 claims and parameters; clientNode masks those with secret-like names.
func clientNode(c HTTP) (*yaml.Node, error) {
	if c.HTTPHeaders != nil {
		headers := maps.Clone(c.HTTPHeaders.Headers)
		for name, h := range headers {
			if secret.IsName(name) {
				h.Values = slices.Repeat([]string{secret.Mask}, len(h.Values))
				headers[name] = h
			}
		}
		c.HTTPHeaders = &commoncfg.Headers{Headers: headers}
	}
	if c.OAuth2 != nil {
		o := *c.OAuth2
		o.Claims, _ = hide(o.Claims).(map[string]any)
		o.EndpointParams = maps.Clone(o.EndpointParams)
		for name := range o.EndpointParams {
			if secret.IsName(name) {
				o.EndpointParams[name] = secret.Mask
			}
		}
		c.OAuth2 = &o
	}
	return encodedNode(c)
}

// mapNode returns a section of free keys, sorted, with the secrets masked.
func mapNode(all map[string]any) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	shown := reflect.ValueOf(hide(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		child, err := valueNode(shown.MapIndex(reflect.ValueOf(key)))
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, textNode(key), child)
	}
	return n, nil
}

// textNode returns a string node, quoted if necessary.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	if n.Style == yaml.LiteralStyle {
		n.Style = yaml.DoubleQuotedStyle // a block literal does not keep all white space
	}
	return n
}

// encodedNode encodes a value with the YAML library. A float with an integral value gets ".0", or it would be read as
// an integer.
func encodedNode(v any) (*yaml.Node, error) {
	n := &yaml.Node{}
	if err := n.Encode(v); err != nil {
		return nil, err
	}
	if _, float := v.(float64); float && !strings.ContainsAny(n.Value, ".e") {
		n.Value, n.Tag = n.Value+".0", ""
	}
	return n, nil
}
