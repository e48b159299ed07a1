package chunk

import "unicode/utf8"

// A Model is one entry of a list of models.
type Model struct {
	ID      string
	OwnedBy string // the engine's name, if the engine sets it
	Parent  string // of an adapter: its base model
}

// MaxName bounds the name of a model, in bytes, since every request contains it. Some names are paths.
const MaxName = 4 << 10

// maxModels bounds the number of models that are kept.
const maxModels = 10_000

// Models parses the first 10,000 entries of a list of models. ok is false if the body is not a list of models.
func Models(body []byte) (models []Model, ok bool) {
	w := scanner{b: body}
	listed := true
	ok = w.peek() == '{' && w.object(func(key []byte) bool {
		if string(key) != "data" {
			return w.skip()
		}
		c := w.peek()
		models, listed = nil, c == '[' || c == 'n' // null is an empty list
		return w.array(func() bool {
			var m Model
			ok := w.object(func(key []byte) (ok bool) {
				switch string(key) {
				case "id":
					m.ID, ok = w.name()
				case "owned_by":
					m.OwnedBy, ok = w.name()
				case "parent":
					m.Parent, ok = w.name()
				default:
					ok = w.skip()
				}
				return ok
			})
			if len(models) < maxModels {
				models = append(models, m)
			}
			return ok
		})
	})
	w.space()
	return models, ok && listed && w.i == len(body)
}

// name parses a string, up to the length at which it is known to be too long. Other values are skipped.
func (w *scanner) name() (string, bool) {
	if w.peek() != '"' {
		return "", w.skip()
	}
	raw, _, ok := w.quoted()
	name, _ := appendUnquoted(nil, raw, MaxName+utf8.UTFMax)
	return string(name), ok
}
