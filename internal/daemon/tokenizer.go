package daemon

import (
	"errors"
	"fmt"

	"replayd/internal/config"
	"replayd/internal/token"
)

// openTokenizer finds what a target's texts are counted with; nil where nothing counts. The name of a family whose word list
// is exact needs no file: lengths come out without one.
func (g *Generation) openTokenizer(t config.Target) (*token.Tokenizer, error) {
	if t.Tokenizer == "" {
		return nil, nil
	}
	found, err := token.Open(t.Tokenizer)
	list, known := token.Family(t.Tokenizer)
	switch {
	case err == nil:
		g.options.Log.Info("tokenizer", "target", t.Name, "file", found.Path(), "kind", found.Kind())
		return found, nil
	case !errors.Is(err, token.ErrNotFound) || !known:
		return nil, fmt.Errorf("target %s: tokenizer: %w", t.Name, err)
	}
	g.options.Log.Info("tokenizer: no file of it here, and none is needed for lengths: the word list is exact for it", "target", t.Name, "name", t.Tokenizer, "words", list)
	return nil, nil
}
