// Package secret masks secrets in texts. It knows how a secret can be encoded, and which names and URLs may hold one.
// It imports no other package of replayd.
package secret

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
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
			all = append(all, spellings(s)...)
		}
	}
	for _, m := range more {
		all = append(all, m...)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(all)
}

// spellings returns the encodings of a secret that a server or an error may use: plain, URL-escaped, HTML, as Go, Python,
// PHP, JavaScript and .NET write them; each of them in JSON, also with PHP's escaped slash and in ASCII, since a JSON
// body that was cut is shown undecoded; and all of them inside Go quotes, since most errors quote a server's text.
func spellings(s string) (all []string) {
	inJSON := func(s string, escapeHTML bool) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(escapeHTML)
		_ = e.Encode(s) // encoding a string cannot fail
		return strings.TrimSpace(b.String())
	}
	within := func(quoted string) string { return quoted[1 : len(quoted)-1] }
	query := strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	escaped := []string{
		url.QueryEscape(s), query, url.PathEscape(s), (&url.URL{Path: "/" + s}).EscapedPath()[1:],
		strings.ReplaceAll(query, "%2F", "/"), // Python's quote
		strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(query), // encodeURIComponent
	}
	for _, text := range slices.Clone(escaped) {
		escaped = append(escaped, percent.ReplaceAllStringFunc(text, strings.ToLower))
	}
	page := html.EscapeString(s)
	for _, apostrophe := range []string{"&#x27;", "&#039;", "&apos;"} {
		escaped = append(escaped, strings.NewReplacer("&#34;", "&quot;", "&#39;", apostrophe).Replace(page))
	}
	for _, text := range distinct(append(escaped, s, page)) {
		for _, said := range []string{text, within(inJSON(text, true)), within(inJSON(text, false)), within(strconv.QuoteToASCII(text))} {
			all = append(all, said, strings.ReplaceAll(said, "/", `\/`))
		}
	}
	for _, said := range distinct(all) {
		all = append(all, within(strconv.Quote(said)))
	}
	for _, said := range distinct(all) {
		all = append(all, within(inJSON(said, true))) // a gateway repeats an engine's error in its own
	}
	return all
}

// distinct returns each text once: most keys have one spelling, and each step would multiply it.
func distinct(texts []string) []string { return slices.Compact(slices.Sorted(slices.Values(texts))) }

var percent = regexp.MustCompile("%[0-9A-F]{2}")

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
	if mark == "" {
		return set.hideEnd(text)
	}
	parts := strings.Split(text, mark)
	for i, before := range parts[:len(parts)-1] {
		parts[i] = set.hideEnd(before)
	}
	return strings.Join(parts, mark)
}

// hideEnd masks the longest beginning of a secret at the end of a text.
func (set Set) hideEnd(text string) string {
	cut := 0
	for _, s := range set {
		for part := min(len(s)-1, len(text)); part >= max(least, cut+1); part-- {
			if strings.HasSuffix(text, s[:part]) {
				cut = part
				break
			}
		}
	}
	if cut == 0 {
		return text
	}
	return text[:len(text)-cut] + Mask
}
