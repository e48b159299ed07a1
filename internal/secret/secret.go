// Package secret masks secrets in texts. It knows how a secret can be encoded, and which names and URLs may hold one.
// It imports no other package of replayd.
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

// Mask replaces a secret, as in prometheus/common.
const Mask = "<secret>"

// least is the minimum length in bytes of a secret that is masked: shorter secrets would match everywhere.
const least = 4

// A Set holds secrets in all their encodings, longest first, because one secret may be a prefix of another. It is
// immutable.
type Set []string

// NewSet returns a set of plain secrets and the members of other sets.
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

// spelt returns the encodings of a secret that a server or an error may use: plain, JSON, JSON with PHP's escaped
// slash, URL-escaped, HTML; and each of them inside Go quotes, since most errors quote a server's text.
func spelt(s string) (all []string) {
	inJSON := func(escapeHTML bool) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(escapeHTML)
		_ = e.Encode(s) // encoding a string cannot fail
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

// Hide replaces all secrets in a text with Mask.
func (set Set) Hide(text string) string {
	for _, s := range set {
		text = strings.ReplaceAll(text, s, Mask)
	}
	return text
}

// HideCut masks secrets in a truncated text, including a secret that is truncated itself: directly before mark,
// wherever mark occurs, or at the end of the text if mark is empty.
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
