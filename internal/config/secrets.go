package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"replayd/internal/secret"
)

// hide gives a copy in which everything under a name that sounds like a secret is masked, at any depth.
func hide(v any) any {
	switch v := v.(type) {
	case map[string]any:
		shown := make(map[string]any, len(v))
		for name, value := range v {
			if secret.IsName(name) && !isCount(name, value) {
				value = secret.Mask
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

// isCount tells max_tokens, stop_token_ids and skip_special_tokens, which are what extra_body is for, from tokens that
// open a door: their values are numbers or yes and no, and the name does not end in the word.
func isCount(name string, value any) bool {
	name = strings.ToLower(name)
	if strings.HasSuffix(name, "token") || secret.IsName(strings.ReplaceAll(name, "token", "")) {
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

// hideUsers does so in every text below a node.
func hideUsers(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		n.Value = secret.InAddresses(n.Value)
	}
	for _, child := range n.Content {
		hideUsers(child)
	}
}
