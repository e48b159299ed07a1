// Package secret is what no text may show: how a secret can be spelt, how it is taken out of what others wrote, and which names
// and addresses may hold one. It lies below all other rooms, and knows none of them.
package secret

import (
	"bytes"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Mask stands where a secret stood, as in prometheus/common.
const Mask = "<secret>"

// least is the length in bytes from which a secret is hidden: replacing shorter ones would leave no text and hide nothing.
const least = 4

// A Set are secrets in all their spellings, the longest first: one secret may be the beginning of another. It never changes.
type Set []string

// NewSet takes secrets as they are, and those of further sets.
func NewSet(secrets []string, more ...Set) Set {
	var all Set
	for _, s := range secrets {
		if len(s) >= least {
			all = append(all, spelt(s)...)
		}
	}
	for _, m := range more {
		all = append(all, m...)
	}
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(all)
}

// spelt is a secret as a server, or an error text, may write it: as it is, as JSON, with PHP's escaped slash, as a part of an
// address, as HTML; and each of these within Go's quotes, as what a server wrote stands in most errors.
func spelt(s string) (all []string) {
	inJSON := func(escapeHTML bool) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(escapeHTML)
		_ = e.Encode(s) // a string always can be
		return strings.TrimSpace(b.String())
	}
	within := func(quoted string) string { return quoted[1 : len(quoted)-1] }
	for _, said := range []string{s, within(inJSON(true)), within(inJSON(false))} {
		all = append(all, said, strings.ReplaceAll(said, "/", `\/`))
	}
	all = append(all, url.QueryEscape(s), url.PathEscape(s), (&url.URL{Path: "/" + s}).EscapedPath()[1:], html.EscapeString(s))
	for _, said := range slices.Clone(all) {
		all = append(all, within(strconv.Quote(said)))
	}
	return all
}

// Hide takes the secrets out of a text.
func (set Set) Hide(text string) string {
	for _, s := range set {
		text = strings.ReplaceAll(text, s, Mask)
	}
	return text
}

// HideCut takes them out of a text that was cut, with the part of one that the cut has left: before mark, wherever that
// stands, or at the end where mark is empty.
func (set Set) HideCut(text, mark string) string {
	text = set.Hide(text)
	if len(set) == 0 {
		return text
	}
	for part := min(len(set[0])-1, len(text)); part >= least; part-- {
		for _, s := range set {
			switch {
			case part >= len(s):
			case mark != "":
				text = strings.ReplaceAll(text, s[:part]+mark, Mask+mark)
			case strings.HasSuffix(text, s[:part]):
				return text[:len(text)-part] + Mask
			}
		}
	}
	return text
}
