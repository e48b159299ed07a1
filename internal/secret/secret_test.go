package secret

import (
	"encoding/json"
	"html"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

const canary = `kanarie/+"<&>` + "\u00e9" + `kanarie`

// In any encoding and with any truncation, no part of four or more bytes of a secret is left.
func TestHide(t *testing.T) {
	set := NewSet([]string{"kan", canary, "kanarie-other"}) // the first one is too short to be masked
	inJSON, _ := json.Marshal(canary)
	said := strings.Trim(string(inJSON), `"`)
	for name, said := range map[string]string{
		"plain": canary, "JSON": said, "PHP's JSON": strings.ReplaceAll(said, "/", `\/`), "JSON in Go's quotes": strings.Trim(strconv.Quote(said), `"`),
		"a query": url.QueryEscape(canary), "a path": url.PathEscape(canary), "HTML": html.EscapeString(canary), "another": "kanarie-other",
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
