package chunk

import "unicode/utf8"

// A Model is one entry of a list of models.
type Model struct {
	ID      string
	OwnedBy string // which engine serves it, where the engine says so
}

// MaxName bounds a name that the server gives, in bytes: it goes into every request. Some are paths.
const MaxName = 4 << 10

// maxModels bounds how many of the models are kept.
const maxModels = 10_000

// Models reads the first 10,000 entries of a list of models. ok is false if the body is not such a list.
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

// name reads a string, as much of it as is needed to tell that it is too long. Any other value is passed over.
func (w *scanner) name() (string, bool) {
	if w.peek() != '"' {
		return "", w.skip()
	}
	raw, _, ok := w.quoted()
	name, _ := appendUnquoted(nil, raw, MaxName+utf8.UTFMax)
	return string(name), ok
}
