package daemon

import (
	"crypto/sha256"
	"errors"
	"os"

	"replayd/internal/config"
	"replayd/internal/token"
)

// tokens is a tokenizer with the digest of its file, which shows whether the file was replaced.
type tokens struct {
	*token.Tokenizer
	digest [sha256.Size]byte
}

// same reports whether two tokenizers, either of which may be nil, count alike.
func (t *tokens) same(other *tokens) bool {
	if t == nil || other == nil {
		return t == other
	}
	return t.digest == other.digest
}

// counter returns the function that counts tokens; nil: there is no tokenizer.
func (t *tokens) counter() func([]byte) int {
	if t == nil {
		return nil
	}
	return t.Count
}

// tokenizer returns the tokenizer; nil: there is none.
func (t *tokens) tokenizer() *token.Tokenizer {
	if t == nil {
		return nil
	}
	return t.Tokenizer
}

// openTokenizer opens the tokenizer of a target; nil: there is none. The name of a model family whose word list is exact needs
// no file.
func (g *Generation) openTokenizer(t config.Target) (*tokens, error) {
	if t.Tokenizer == "" {
		return nil, nil
	}
	found, err := token.Open(t.Tokenizer)
	list, known := token.Family(t.Tokenizer)
	switch {
	case err == nil:
		file, err := os.ReadFile(found.Path())
		if err != nil {
			return nil, err
		}
		g.options.Log.Info("tokenizer found", "target", t.Name, "file", found.Path(), "kind", found.Kind())
		return &tokens{found, sha256.Sum256(file)}, nil
	case !errors.Is(err, token.ErrNotFound) || !known:
		return nil, err
	}
	g.options.Log.Info("tokenizer not found: not needed for lengths, the word list is exact for the model", "target", t.Name, "name", t.Tokenizer, "words", list)
	return nil, nil
}
