package openai

import (
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// hidden are values that no text may show. It never changes.
type hidden struct {
	values []string
	spelt  []string // each in all its spellings, the longest first
}

// leastSecret is the length in bytes from which a secret is hidden: replacing shorter ones would leave no text and hide nothing.
const leastSecret = 4

// spelt are secrets as a server, or an error text of ours, may write them: as they are, as JSON, with PHP's escaped slash, as a part of
// an address, as HTML, in Go's quotes. The longest comes first: one secret may be the beginning of another.
func spelt(secrets []string) []string {
	var all []string
	for _, s := range secrets {
		if len(s) < leastSecret {
			continue
		}
		inJSON, _ := json.Marshal(s) // a string always can be
		quoted, plain := strconv.Quote(s), quote(s)
		for _, said := range []string{s, string(inJSON[1 : len(inJSON)-1]), string(plain[1 : len(plain)-1])} {
			all = append(all, said, strings.ReplaceAll(said, "/", `\/`))
		}
		all = append(all, url.QueryEscape(s), url.PathEscape(s), (&url.URL{Path: "/" + s}).EscapedPath()[1:], html.EscapeString(s), quoted[1:len(quoted)-1])
	}
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(all)
}

// spellings are those of the target's own credentials and of the marks' secrets.
func (c *Client) spellings() []string {
	var all []string
	for _, h := range []*hidden{c.secrets.Load(), c.marked.Load()} {
		if h != nil {
			all = append(all, h.spelt...)
		}
	}
	return all
}

const masked = "<secret>"

// redact takes the target's own credentials, and the marks' secrets, out of what a server wrote: some repeat the key that
// they refuse.
func (c *Client) redact(text string) string {
	for _, s := range c.spellings() {
		text = strings.ReplaceAll(text, s, masked)
	}
	return text
}

// front is the beginning of what a server sent, at most n bytes, without our credentials: not even the part of one that the
// cut has left.
func (c *Client) front(b []byte, n int) string {
	text := c.redact(string(b[:min(len(b), n)]))
	if len(b) < n {
		return text
	}
	left := 0 // bytes of the longest part
	for _, s := range c.spellings() {
		for part := min(len(s)-1, len(text)); part > left; part-- {
			if strings.HasSuffix(text, s[:part]) {
				left = part
			}
		}
	}
	if left < leastSecret {
		return text
	}
	return text[:len(text)-left] + masked
}
