package chunk

// Counts are token counts.
type Counts struct {
	Prompt, Output, Cached, Reasoning int
	CacheTold                         bool // the server reported the cached tokens
	Set                               bool // the server reported the output tokens
}

// MaxTokens is the largest number accepted as a token count.
const MaxTokens = 1_000_000_000

func (w *scanner) usage(u *Counts) bool {
	*u = Counts{}
	var own, detail int // SGLang has reasoning_tokens next to the details, too
	ok := w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "prompt_tokens":
			u.Prompt, _, ok = w.count()
		case "completion_tokens":
			u.Output, u.Set, ok = w.count()
		case "reasoning_tokens":
			own, _, ok = w.count()
		case "prompt_tokens_details":
			u.Cached, u.CacheTold, ok = w.member("cached_tokens")
		case "completion_tokens_details":
			detail, _, ok = w.member("reasoning_tokens")
		default:
			ok = w.skip()
		}
		return ok
	})
	u.Reasoning = max(own, detail)
	if !u.Set {
		*u = Counts{}
	}
	return ok
}

func (w *scanner) timings(t *Counts) bool {
	*t = Counts{}
	ok := w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "cache_n":
			t.Cached, t.CacheTold, ok = w.count()
		case "prompt_n":
			t.Prompt, _, ok = w.count()
		case "predicted_n":
			t.Output, t.Set, ok = w.count()
		default:
			ok = w.skip()
		}
		return ok
	})
	t.Prompt += t.Cached // prompt_n does not include cached tokens
	if !t.Set {
		*t = Counts{}
	}
	return ok
}

// member parses one count of an object.
func (w *scanner) member(name string) (n int, given, ok bool) {
	ok = w.object(func(key []byte) (ok bool) {
		if string(key) != name {
			return w.skip()
		}
		n, given, ok = w.count()
		return ok
	})
	return n, given, ok
}
