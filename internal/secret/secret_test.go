package secret

import (
	"encoding/json"
	"html"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const canary = `kanarie/+"<&>'` + "\u00e9" + `kanarie`

// In any encoding and with any truncation, no part of four or more bytes of a secret is left.
func TestHide(t *testing.T) {
	set := NewSet([]string{"kan", canary, "kanarie-other"}) // the first one is too short to be masked
	inJSON, _ := json.Marshal(canary)
	said := strings.Trim(string(inJSON), `"`)
	for name, said := range map[string]string{
		"plain": canary, "JSON": said, "PHP's JSON": strings.ReplaceAll(said, "/", `\/`), "JSON in Go's quotes": strings.Trim(strconv.Quote(said), `"`),
		"a query": url.QueryEscape(canary), "a path": url.PathEscape(canary), "HTML": html.EscapeString(canary), "another": "kanarie-other",
		"a query in JSON": strings.Trim(inJSONOf(url.QueryEscape(canary)), `"`), "HTML in JSON": strings.Trim(inJSONOf(html.EscapeString(canary)), `"`),
		"JSON in JSON":  strings.Trim(inJSONOf(said), `"`),
		"Python's HTML": pythonHTML.Replace(canary), "PHP's HTML": strings.ReplaceAll(pythonHTML.Replace(canary), "&#x27;", "&#039;"),
		"Python's HTML in JSON": strings.Trim(inJSONOf(pythonHTML.Replace(canary)), `"`), "ASCII JSON": strings.Trim(strconv.QuoteToASCII(canary), `"`),
		"Python's query": strings.ReplaceAll(url.QueryEscape(canary), "%2F", "/"), "JavaScript's query": strings.ReplaceAll(url.QueryEscape(canary), "%27", "'"),
		"a query of .NET": lowerHex.ReplaceAllStringFunc(url.QueryEscape(canary), strings.ToLower),
	} {
		if got := set.Hide("bad key " + said + ", sorry"); got != "bad key <secret>, sorry" {
			t.Errorf("%s: got %q", name, got)
		}
		for n := range len(said) + 1 {
			if got := set.HideCut("a "+said[:n], ""); strings.Contains(got, "kana") {
				t.Errorf("%s, cut at %d: got %q", name, n, got)
			}
			if got := set.HideCut("a "+said[:n]+"… and "+said[:n]+"…", "…"); strings.Contains(got, "kana") {
				t.Errorf("%s, cut at %d before a mark: got %q", name, n, got)
			}
		}
	}
	for _, none := range []Set{nil, NewSet(nil), NewSet([]string{"", "abc"})} {
		if got := none.HideCut("abc and abcd", ""); got != "abc and abcd" {
			t.Errorf("want a text without secrets as it is, got %q", got)
		}
	}
}

var (
	pythonHTML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;")
	lowerHex   = regexp.MustCompile("%[0-9A-F]{2}")
)

func inJSONOf(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// In merged sets the longest encoding is masked first, so that no rest of another secret remains.
func TestSetsTogether(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, 4+rnd.IntN(6))
		for i := range b {
			b[i] = "ab"[rnd.IntN(2)]
		}
		return string(b)
	}
	for range 200 {
		a, b := []string{word(), word()}, []string{word()}
		text := word() + b[0] + word() + a[1]
		one, both := NewSet([]string{a[0], a[1], b[0]}), NewSet(nil, NewSet(a), NewSet(b))
		if want, got := one.Hide(text), both.Hide(text); got != want {
			t.Fatalf("%q without %q and %q: want %q, got %q", text, a, b, want, got)
		}
	}
}

func TestIsName(t *testing.T) {
	for name, want := range map[string]bool{"api_key": true, "X-Token": true, "Authorization": true, "password_file": true, "model": false, "": false} {
		if got := IsName(name); got != want {
			t.Errorf("%s: want %v, got %v", name, want, got)
		}
	}
}

// YAML errors repeat values of the file; InYAML removes them.
func TestInYAML(t *testing.T) {
	for given, want := range map[string]string{
		"yaml: unmarshal errors:\n  line 2: cannot unmarshal !!str `sesame` into config.Authorization":                                 "yaml: unmarshal errors:\n  line 2: cannot unmarshal !!str into config.Authorization",
		"yaml: unmarshal errors:\n  line 2: cannot unmarshal !!str `se`s\nme` into a.B\n  line 3: cannot unmarshal !!str `x` into a.C": "yaml: unmarshal errors:\n  line 2: cannot unmarshal !!str into a.B\n  line 3: cannot unmarshal !!str into a.C",
		"yaml: unknown anchor 'sesame' referenced":                 "yaml: unknown anchor: a text that begins with * needs quotes",
		"yaml: cannot decode !!str `sesame` as a !!int":            "yaml: cannot decode !!str as a !!int",
		"yaml: invalid map key: []interface {}{\"sesame\"}":        "yaml: invalid map key",
		`parse "http://me:ses/ame@h": invalid port ":ses" after h`: "want an address, got one that cannot be read",
		"yaml: line 4: did not find expected ',' or ']'":           "yaml: line 4: did not find expected ',' or ']'",
	} {
		if got := InYAML(given); got != want {
			t.Errorf("%s:\nwant %s\ngot  %s", given, want, got)
		}
	}
}

// InAddresses masks user, password and secret-like parameters.
func TestInAddresses(t *testing.T) {
	for given, want := range map[string]string{
		"see http://me:sesame@h/m, ftp://sesame@h":       "see http://xxxxx@h/m, ftp://xxxxx@h",
		"http://h/m?api_key=sesame&a=1&X-Token=sesame#b": "http://h/m?api_key=xxxxx&a=1&X-Token=xxxxx#b",
		"http://h/m?a=1": "http://h/m?a=1",
	} {
		if got := InAddresses(given); got != want {
			t.Errorf("%s: want %s, got %s", given, want, got)
		}
	}
}

// Shown masks user, password and query.
func TestShown(t *testing.T) {
	for given, want := range map[string]string{
		"http://me:kanarie@h:1/m?key=kanarie": "http://xxxxx@h:1/m?…", "http://kanarie@h": "http://xxxxx@h", "http://h/m": "http://h/m",
		"http://kanarie:kanarie/@h:x": "one that cannot be read",
	} {
		if got := Shown(given); got != want {
			t.Errorf("%s: want %s, got %s", given, want, got)
		}
	}
}

// A set is made for each page that is read, so a key without special characters costs a few spellings, not hundreds of equal ones.
func TestSpellingsOfAPlainKey(t *testing.T) {
	if n, set := len(spellings("sk-abcdefghijklmnop")), NewSet([]string{"sk-abcdefghijklmnop"}); n > 16 || len(set) != 1 {
		t.Errorf("want one spelling, got %d from %d", len(set), n)
	}
}
