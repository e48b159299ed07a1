package daemon

import (
	"crypto/sha256"
	"errors"
	"os"

	"replayd/internal/config"
	"replayd/internal/token"
)

// Tokens are a tokenizer and the digest of its file, by which another one in its place is noticed.
type tokens struct {
	*token.Tokenizer
	digest [sha256.Size]byte
}

// same says of two, either of which may be nil, whether they count alike.
func (t *tokens) same(other *tokens) bool {
	if t == nil || other == nil {
		return t == other
	}
	return t.digest == other.digest
}

// counter counts by it; nil without one.
func (t *tokens) counter() func([]byte) int {
	if t == nil {
		return nil
	}
	return t.Count
}

// tokenizer is what counts; nil where nothing does.
func (t *tokens) tokenizer() *token.Tokenizer {
	if t == nil {
		return nil
	}
	return t.Tokenizer
}

// openTokenizer finds what a target's texts are counted with; nil where nothing counts. The name of a family whose word list
// is exact needs no file: lengths come out without one.
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
		g.options.Log.Info("tokenizer", "target", t.Name, "file", found.Path(), "kind", found.Kind())
		return &tokens{found, sha256.Sum256(file)}, nil
	case !errors.Is(err, token.ErrNotFound) || !known:
		return nil, err
	}
	g.options.Log.Info("tokenizer: no file of it here, and none is needed for lengths: the word list is exact for it", "target", t.Name, "name", t.Tokenizer, "words", list)
	return nil, nil
}
