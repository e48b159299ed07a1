package secret

import (
	"net/url"
	"regexp"
	"strings"
)

// IsName says whether a key or a header of that name may hold a secret.
func IsName(name string) bool { return names.MatchString(name) }

var names = regexp.MustCompile(`(?i)key|token|secret|passw(or)?d|credential|authorization|cookie|(^|[-_.])(auth|jwt|bearer)($|[-_.])`)

var (
	users   = regexp.MustCompile(`://[^/?#\s]*@`)
	queries = regexp.MustCompile(`(?i)([?&][^=&#\s]*(?:key|token|secret|password|credential|authorization|signature)[^=&#\s]*=)[^&#\s]+`)
)

// InAddresses masks user and password in every address in a text, and parameters whose names sound like a secret, so that it
// still is one.
func InAddresses(text string) string {
	return queries.ReplaceAllString(users.ReplaceAllString(text, "://xxxxx@"), "${1}xxxxx")
}

// Shown is an address as logs and reports may have it: without user, password and query, which may be secret.
func Shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		u = nil
	}
	return ShownURL(u)
}

// ShownURL is Shown of a URL; nil is one that could not be read, which may hide a password anywhere.
func ShownURL(u *url.URL) string {
	if u == nil {
		return "one that cannot be read"
	}
	shown := *u
	if u.User != nil {
		shown.User = url.User("xxxxx")
	}
	if u.RawQuery != "" {
		shown.RawQuery = "…"
	}
	return shown.String()
}

// repeats are what errors about YAML, and about addresses in it, repeat of a file: the beginning of a value, a value that is not
// what its tag says, the name of an anchor, which *pass is and which may have been meant as a password, a key that is none.
var repeats = []struct {
	text *regexp.Regexp
	with string
}{
	{regexp.MustCompile("(?s) ?`.*`"), ""},
	{regexp.MustCompile(`(?s)unknown anchor '.*' referenced`), "unknown anchor: a text that begins with * needs quotes"},
	{regexp.MustCompile(`(?s)invalid map key: .*`), "invalid map key"},
	{regexp.MustCompile(`(?s)parse ".*`), "want an address, got one that cannot be read"},
}

// InYAML is what an error about YAML says, without the values of the file that it repeats: one of them may be a secret.
func InYAML(said string) string {
	const next = "\n  line " // of several faults
	faults := strings.Split(said, next)
	for i := range faults {
		for _, r := range repeats {
			faults[i] = r.text.ReplaceAllString(faults[i], r.with)
		}
	}
	return strings.Join(faults, next)
}
