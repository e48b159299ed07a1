package chunk

import "slices"

// Counts are token counts, as a server gave them.
type Counts struct {
	Prompt, Output, Total, Cached, Reasoning int

	HasPrompt, HasOutput, HasTotal bool
	CacheReported                  bool // the server reported the cached tokens
	Set                            bool // the server reported the prompt, the output or their sum
}

// MaxTokens is the largest number accepted as a token count.
const MaxTokens = 1_000_000_000

// usage parses a usage. Of several names for one count the largest is taken: a gateway may leave one of them at 0, and
// SGLang has reasoning_tokens next to the details, too.
func (w *scanner) usage(u *Counts) bool {
	*u = Counts{}
	var cached [5]int // by the name
	var reported [5]bool
	var reasoning [3]int
	var in, out int
	var hasIn, hasOut bool
	ok := w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "prompt_tokens":
			u.Prompt, u.HasPrompt, ok = w.count()
		case "completion_tokens":
			u.Output, u.HasOutput, ok = w.count()
		case "total_tokens":
			u.Total, u.HasTotal, ok = w.count()
		case "input_tokens":
			in, hasIn, ok = w.count()
		case "output_tokens":
			out, hasOut, ok = w.count()
		case "prompt_tokens_details":
			cached[0], reported[0], ok = w.member("cached_tokens")
		case "input_tokens_details":
			cached[1], reported[1], ok = w.member("cached_tokens")
		case "cached_tokens":
			cached[2], reported[2], ok = w.count()
		case "prompt_cache_hit_tokens":
			cached[3], reported[3], ok = w.count()
		case "cache_read_input_tokens":
			cached[4], reported[4], ok = w.count()
		case "completion_tokens_details":
			reasoning[0], _, ok = w.member("reasoning_tokens")
		case "output_tokens_details":
			reasoning[1], _, ok = w.member("reasoning_tokens")
		case "reasoning_tokens":
			reasoning[2], _, ok = w.count()
		default:
			ok = w.skip()
		}
		return ok
	})
	u.Prompt, u.HasPrompt = max(u.Prompt, in), u.HasPrompt || hasIn
	u.Output, u.HasOutput = max(u.Output, out), u.HasOutput || hasOut
	u.Cached, u.CacheReported = slices.Max(cached[:]), slices.Contains(reported[:], true)
	u.Reasoning = slices.Max(reasoning[:])
	u.set()
	return ok
}

// set clears counts that say nothing of a length.
func (u *Counts) set() {
	if u.Set = u.HasPrompt || u.HasOutput || u.HasTotal; !u.Set {
		*u = Counts{}
	}
}

func (w *scanner) timings(t *Counts) bool {
	*t = Counts{}
	ok := w.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "cache_n":
			t.Cached, t.CacheReported, ok = w.count()
		case "prompt_n":
			t.Prompt, t.HasPrompt, ok = w.count()
		case "predicted_n":
			t.Output, t.HasOutput, ok = w.count()
		default:
			ok = w.skip()
		}
		return ok
	})
	t.Prompt += t.Cached // prompt_n does not include cached tokens
	t.set()
	return ok
}

// Merge returns the counts of two usages of one answer: each is the larger one, since counts only grow within it. fell
// reports that a later one was smaller.
func (u Counts) Merge(later Counts) (merged Counts, fell bool) {
	larger := func(a *int, has *bool, b int, given bool) {
		fell = fell || given && b < *a
		*a, *has = max(*a, b), *has || given
	}
	larger(&u.Prompt, &u.HasPrompt, later.Prompt, later.HasPrompt)
	larger(&u.Output, &u.HasOutput, later.Output, later.HasOutput)
	larger(&u.Total, &u.HasTotal, later.Total, later.HasTotal)
	larger(&u.Cached, &u.CacheReported, later.Cached, later.CacheReported)
	u.Reasoning, u.Set = max(u.Reasoning, later.Reasoning), u.Set || later.Set
	return u, fell
}

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
