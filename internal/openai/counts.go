package openai

// counts of tokens; set when the server gave them.
type counts struct {
	prompt, output, cached, reasoning int
	told                              bool // the server said how many were cached
	set                               bool
}

// maxTokens bounds what is taken for a count of tokens.
const maxTokens = 1_000_000_000

func (w *walker) usage(u *counts) bool {
	*u = counts{}
	var own, detail int // SGLang has reasoning_tokens beside the details, too
	ok := w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "prompt_tokens":
			u.prompt, _, ok = w.count()
		case "completion_tokens":
			u.output, u.set, ok = w.count()
		case "reasoning_tokens":
			own, _, ok = w.count()
		case "prompt_tokens_details":
			u.cached, u.told, ok = w.member("cached_tokens")
		case "completion_tokens_details":
			detail, _, ok = w.member("reasoning_tokens")
		default:
			ok = w.skip()
		}
		return ok
	})
	u.reasoning = max(own, detail)
	if !u.set {
		*u = counts{}
	}
	return ok
}

func (w *walker) timings(t *counts) bool {
	*t = counts{}
	ok := w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "cache_n":
			t.cached, t.told, ok = w.count()
		case "prompt_n":
			t.prompt, _, ok = w.count()
		case "predicted_n":
			t.output, t.set, ok = w.count()
		default:
			ok = w.skip()
		}
		return ok
	})
	t.prompt += t.cached // prompt_n leaves out what the cache held
	if !t.set {
		*t = counts{}
	}
	return ok
}

// member is one count of an object.
func (w *walker) member(name string) (n int, given, ok bool) {
	ok = w.object(func(key []byte) (ok bool) {
		if string(key) != name {
			return w.skip()
		}
		n, given, ok = w.count()
		return ok
	})
	return n, given, ok
}
