package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"replayd/internal/openai"
	"replayd/internal/secret"
)

// hide returns a copy in which the values of secret-like names are masked, at any depth.
func hide(v any) any {
	switch v := v.(type) {
	case map[string]any:
		shown := make(map[string]any, len(v))
		for name, value := range v {
			if secret.IsName(name) && !isCount(name, value) && value != openai.SessionMark {
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

// isCount reports whether a name with "token" in it holds token counts or options, such as max_tokens, stop_token_ids
// and skip_special_tokens in extra_body, and not a secret. The values of such names are numbers or booleans, and the
// name does not end in "token".
func isCount(name string, value any) bool {
	name = strings.ToLower(name)
	if strings.HasSuffix(name, "token") || secret.IsName(strings.ReplaceAll(name, "token", "")) {
		return false
	}
	switch v := value.(type) {
	case []any:
		return !slices.ContainsFunc(v, func(one any) bool { return !isCount(name, one) })
	case nil, bool, int, int64, uint64, float64, json.Number:
		return true
	}
	return false
}

// hideUsers masks user and password in the URLs of every text below a node.
func hideUsers(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		n.Value = secret.InAddresses(n.Value)
	}
	for _, child := range n.Content {
		hideUsers(child)
	}
}
