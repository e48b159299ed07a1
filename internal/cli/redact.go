package cli

import (
	"slices"
	"strings"

	"replayd/internal/secret"
)

// secretFlags have values that may be secret.
var secretFlags = []string{"--header", "-H", "--extra-inputs", "--api-key"}

// Typed returns a command line as typed, without values that may be secret.
func Typed(args []string) string {
	words := slices.Clone(args)
	hide := false // the previous word was a secret flag or one of its values
	for i, word := range args {
		name, _, joined := strings.Cut(word, "=")
		switch isFlag := strings.HasPrefix(word, "-"); {
		case slices.Contains(secretFlags, name) && joined:
			words[i], hide = name+"=…", false
		case slices.Contains(secretFlags, name):
			hide = true
		case isFlag && strings.HasPrefix(word, "-H"):
			words[i], hide = "-H…", false
		case hide && (slices.Contains(secretFlags, args[i-1]) || isPair(word)):
			words[i] = "…"
		default:
			hide = false
		}
	}
	return "replayd " + secret.InAddresses(strings.Join(words, " "))
}
