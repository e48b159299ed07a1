package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"replayd/internal/openai"
)

// masked stands where a secret stood, as in prometheus/common.
const masked = "<secret>"

// hide gives a copy in which everything under a name that sounds like a secret is masked, at any depth.
func hide(v any) any {
	switch v := v.(type) {
	case map[string]any:
		shown := make(map[string]any, len(v))
		for name, value := range v {
			if openai.IsSecretName(name) && !isCount(name, value) {
				value = masked
			}
			shown[name] = hide(value)
		}
		return shown
	case map[any]any: // prometheus/common's YAML library makes these
		shown := make(map[string]any, len(v))
		for name, value := range v {
			shown[fmt.Sprint(name)] = value
		}
		return hide(shown)
	case []any:
		shown := make([]any, len(v))
		for i, one := range v {
			shown[i] = hide(one)
		}
		return shown
	}
	return v
}

// repeats are what errors about YAML, and about addresses in it, repeat of a file: the beginning of a value, a value that is not
// what its tag says, the name of an anchor, which *pass is and which may have been meant as a password, a key that is none.
var repeats = []struct {
	text *regexp.Regexp
	with string
}{
	{regexp.MustCompile("(?s) ?`.*`"), ""},
	{regexp.MustCompile(`(?s)unknown anchor '.*' referenced`), "unknown anchor: a text that begins with * needs quotes"},
	{regexp.MustCompile(`(?s)invalid map key: .*`), "invalid map key"},
	{regexp.MustCompile(`(?s)parse ".*`), "want an address, got one that cannot be read"},
}

// WithoutValues is an error about YAML without the values of the file that it repeats: one of them may be a secret.
func WithoutValues(err error) error {
	const next = "\n  line " // of several faults
	faults := strings.Split(err.Error(), next)
	for i := range faults {
		for _, r := range repeats {
			faults[i] = r.text.ReplaceAllString(faults[i], r.with)
		}
	}
	return errors.New(strings.Join(faults, next))
}

// isCount tells max_tokens, stop_token_ids and skip_special_tokens, which are what extra_body is for, from tokens that
// open a door: their values are numbers or yes and no, and the name does not end in the word.
func isCount(name string, value any) bool {
	name = strings.ToLower(name)
	if strings.HasSuffix(name, "token") || openai.IsSecretName(strings.ReplaceAll(name, "token", "")) {
		return false
	}
	switch v := value.(type) {
	case []any:
		return !slices.ContainsFunc(v, func(one any) bool { return !isCount(name, one) })
	case nil, bool, int, int64, uint64, float64:
		return true
	}
	return false
}

var users = regexp.MustCompile(`://[^/?#\s]*@`)

// queries are parameters of addresses whose names sound like a secret.
var queries = regexp.MustCompile(`(?i)([?&][^=&#\s]*(?:key|token|secret|password|credential|authorization|signature)[^=&#\s]*=)[^&#\s]+`)

// WithoutUsers masks user and password in every address in a text, and parameters that may be secret, so that it still is one.
func WithoutUsers(text string) string {
	return queries.ReplaceAllString(users.ReplaceAllString(text, "://xxxxx@"), "${1}xxxxx")
}

// hideUsers does so in every text below a node.
func hideUsers(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		n.Value = WithoutUsers(n.Value)
	}
	for _, child := range n.Content {
		hideUsers(child)
	}
}
