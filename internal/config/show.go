package config

import (
	"bytes"
	"encoding"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	commoncfg "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"replayd/internal/measure"
	"replayd/internal/secret"
)

// The scalars marshal to the format of the file.
var (
	_ encoding.TextMarshaler = Duration(0)
	_ encoding.TextMarshaler = Bytes(0)
	_ encoding.TextMarshaler = Auto(0)
	_ encoding.TextMarshaler = Integer(0)
)

// Show returns the configuration as YAML with all defaults, in the order of docs/reference/configuration.md. Load can read it.
// Secrets are masked: those of prometheus/common's types, values of secret-like names in extra_body, http_headers and
// request.headers, and user and password in URLs.
func (c Config) Show() ([]byte, error) {
	root, err := section(reflect.ValueOf(c))
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

// section returns a struct as a mapping by its koanf tags. Lists of sections come last.
func section(v reflect.Value) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	var lists []*yaml.Node
	for field, value := range v.Fields() {
		tag := field.Tag.Get("koanf")
		if tag == "-" {
			continue
		}
		if bounds, ok := value.Interface().(Bounds); ok { // bounds are keys of the same section
			n.Content = append(n.Content, bounds.show()...)
			continue
		}
		child, err := entry(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", tag, err)
		}
		if child.Kind == yaml.SequenceNode {
			lists = append(lists, text(tag), child)
		} else {
			n.Content = append(n.Content, text(tag), child)
		}
	}
	n.Content = append(n.Content, lists...)
	return n, nil
}

// show returns every quantity under replayd's name, with "" for those without a bound.
func (b Bounds) show() (keys []*yaml.Node) {
	levels := b.Levels()
	for _, q := range measure.Quantities() {
		value := text("")
		if limit := levels.Limit(q); limit > 0 {
			value = &yaml.Node{Kind: yaml.ScalarNode, Value: measure.Bound{Quantity: q, Limit: limit}.Text(limit)}
		}
		keys = append(keys, text(q.String()), value)
	}
	return keys
}

// entry returns one value of the configuration as a YAML node.
func entry(v reflect.Value) (*yaml.Node, error) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return encoded(nil)
		}
		v = v.Elem()
	}
	switch value := v.Interface().(type) {
	case HTTP:
		return client(value)
	case yaml.Marshaler: // secrets and URLs of prometheus/common
		return encoded(value)
	case encoding.TextMarshaler:
		t, err := value.MarshalText()
		if len(t) == 0 {
			return text(""), err
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Value: string(t)}, err
	case map[string]any:
		return free(hide(value))
	case map[string]string:
		all := make(map[string]any, len(value))
		for name, text := range value {
			all[name] = text
		}
		return free(hide(all))
	}
	switch v.Kind() {
	case reflect.Struct:
		return section(v)
	case reflect.Slice:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, one := range v.Seq2() {
			child, err := entry(one)
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, child)
		}
		return list, nil
	case reflect.String:
		return text(v.String()), nil
	case reflect.Bool, reflect.Int, reflect.Uint64, reflect.Float64:
		return encoded(v.Interface())
	}
	return nil, fmt.Errorf("a %v cannot be shown", v.Type())
}

// client returns the http section as prometheus/common writes it, with its secrets masked. prometheus/common does not
// mask header values and OAuth 2 claims and parameters; client masks those with secret-like names.
func client(c HTTP) (*yaml.Node, error) {
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
	return encoded(c.HTTPClientConfig)
}

// free returns an arbitrary value as a YAML node, with sorted keys.
func free(v any) (*yaml.Node, error) {
	switch v := v.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			child, err := free(v[key])
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, text(key), child)
		}
		return n, nil
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, one := range v {
			child, err := free(one)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		return n, nil
	case string:
		return text(v), nil
	}
	return encoded(v)
}

// text returns a string node, quoted if necessary.
func text(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	if n.Style == yaml.LiteralStyle {
		n.Style = yaml.DoubleQuotedStyle // a block literal does not keep all white space
	}
	return n
}

// encoded encodes a value with the YAML library. A float with an integral value gets ".0", or it would be read as an
// integer.
func encoded(v any) (*yaml.Node, error) {
	n := &yaml.Node{}
	if err := n.Encode(v); err != nil {
		return nil, err
	}
	if _, float := v.(float64); float && !strings.ContainsAny(n.Value, ".e") {
		n.Value, n.Tag = n.Value+".0", ""
	}
	return n, nil
}

// MarshalText returns Prometheus' format ("1d", "1m30s"), or Go's if the duration is negative or not a whole number of
// milliseconds.
func (d Duration) MarshalText() ([]byte, error) {
	if d < 0 || time.Duration(d)%time.Millisecond != 0 {
		return []byte(d.String()), nil
	}
	return []byte(model.Duration(d).String()), nil
}

// MarshalText returns the number with the largest unit of 1024 that divides it.
func (b Bytes) MarshalText() ([]byte, error) {
	n, unit := int64(b), ""
	for _, u := range []string{"KiB", "MiB", "GiB"} {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, u
	}
	return append(strconv.AppendInt(nil, n, 10), unit...), nil
}

// MarshalText returns the number.
func (i Integer) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(i), 10), nil }

// MarshalText returns the number or "auto".
func (a Auto) MarshalText() ([]byte, error) {
	if a == AutoValue {
		return []byte("auto"), nil
	}
	return strconv.AppendInt(nil, int64(a), 10), nil
}

// MarshalText returns two percentages: 25-75%.
func (w Within) MarshalText() ([]byte, error) {
	if w == (Within{}) {
		return nil, nil
	}
	percent := func(share float64) string { return strconv.FormatFloat(math.Round(1e8*share)/1e6, 'f', -1, 64) }
	return []byte(percent(w[0]) + "-" + percent(w[1]) + "%"), nil
}
