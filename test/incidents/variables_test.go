//go:build real

package incidents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"replayd/test/outside"
)

// A variable is a variable of a dashboard.
type variable struct {
	Name, Type, Regex, AllValue string
	Query                       json.RawMessage // a text, or an object with one
	Sort                        int
	Multi, IncludeAll           bool
}

var special = regexp.MustCompile(`[$^*{}\[\]'+?.()|]`)

// literal quotes a value for a regular expression inside of a string, where a backslash is doubled.
func literal(value string) string {
	return special.ReplaceAllString(strings.ReplaceAll(value, `\`, `\\\\`), `\\$0`)
}

// all is the text for several values: a regular expression.
func (v variable) all(values []string) string {
	if v.AllValue != "" {
		return v.AllValue // unchanged
	}
	if len(values) == 1 {
		return literal(values[0])
	}
	literals := make([]string, len(values))
	for i, value := range values {
		literals[i] = literal(value)
	}
	return "(" + strings.Join(literals, "|") + ")"
}

// one is the text for one value, inside of quotes.
func (v variable) one(value string) string {
	if v.Multi || v.IncludeAll {
		return literal(value)
	}
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)
}

// asked returns the query of a variable.
func (v variable) asked() string {
	var text string
	var object struct{ Query string }
	if json.Unmarshal(v.Query, &text) == nil {
		return text
	}
	_ = json.Unmarshal(v.Query, &object) // otherwise it is empty, which its use reports
	return object.Query
}

// options returns the values that can be chosen after the choices before.
func (v variable) options(ctx context.Context, p outside.Prometheus, chosen view) (values []string, err error) {
	if v.Type == "custom" || v.Type == "interval" {
		for option := range strings.SplitSeq(v.asked(), ",") {
			_, value, named := strings.Cut(option, " : ")
			if !named {
				value = option
			}
			values = append(values, strings.TrimSpace(value))
		}
		return values, nil
	}
	if v.Type == "constant" || v.Type == "textbox" {
		return []string{v.asked()}, nil
	}
	if v.Type != "query" {
		return nil, fmt.Errorf("want a type of variable that is known here, got %q", v.Type)
	}
	asked, _, err := chosen.fill(v.asked(), "")
	if err != nil {
		return nil, err
	}
	asked = strings.TrimSuffix(asked, ")")
	if selector, ok := strings.CutPrefix(asked, "label_values("); ok {
		at := strings.LastIndex(selector, ",")
		label := strings.TrimSpace(selector[at+1:])
		match := url.Values{"start": {chosen.from.Format(time.RFC3339Nano)}, "end": {chosen.to.Format(time.RFC3339Nano)}}
		if at >= 0 {
			match.Set("match[]", selector[:at])
		}
		err := p.Ask(ctx, "label/"+label+"/values", match, &values)
		return v.pick(values), err
	}
	promQL, ok := strings.CutPrefix(asked, "query_result(")
	if !ok {
		return nil, fmt.Errorf("want label_values or query_result, got %s", asked)
	}
	result, err := p.Query(ctx, promQL, time.Time{})
	for _, s := range result { // in Grafana's format, for the regular expression
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(s.Metric)) {
			if name != "__name__" {
				labels = append(labels, name+`="`+s.Metric[name]+`"`)
			}
		}
		if s.Value[1] != nil {
			values = append(values, fmt.Sprintf("%s{%s} %v %.0f", s.Metric["__name__"], strings.Join(labels, ","), s.Value[1], 1000*s.Value[0].(float64)))
		}
	}
	return v.pick(values), err
}

// pick sorts the values and takes the part that matches the regular expression: its group "value", else the first
// group, else everything.
func (v variable) pick(values []string) (picked []string) {
	if v.Regex == "" {
		picked = values
	} else {
		pattern := regexp.MustCompile(strings.Trim(v.Regex, "/"))
		for _, value := range values {
			m := pattern.FindStringSubmatch(value)
			if m == nil {
				continue
			}
			take := min(1, len(m)-1)
			if i := pattern.SubexpIndex("value"); i >= 0 {
				take = i
			}
			picked = append(picked, m[take])
		}
	}
	if v.Sort != 0 {
		slices.Sort(picked)
	}
	return slices.Compact(picked)
}
