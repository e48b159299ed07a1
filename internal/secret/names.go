package secret

import (
	"net/url"
	"regexp"
	"strings"
)

// IsName reports whether a key or header with this name may hold a secret.
func IsName(name string) bool { return names.MatchString(name) }

var names = regexp.MustCompile(`(?i)key|token|secret|passw(or)?d|credential|authorization|cookie|(^|[-_.])(auth|jwt|bearer)($|[-_.])`)

var (
	users   = regexp.MustCompile(`://[^/?#\s]*@`)
	queries = regexp.MustCompile(`(?i)([?&](?:[^=&#\s]*` +
		`(?:key|token|secret|password|credential|authorization|signature)[^=&#\s]*|sig|code)=)([^&#\s]+)`)
)

// InQuery returns the values of parameters with secret-like names in a query, as they stand there and decoded.
func InQuery(query string) (values []string) {
	for _, found := range queries.FindAllStringSubmatch("?"+query, -1) {
		values = append(values, found[2])
		if plain, err := url.QueryUnescape(found[2]); err == nil && plain != found[2] {
			values = append(values, plain)
		}
	}
	return values
}

// InAddresses masks user and password in every URL in a text, and query parameters with secret-like names. The result
// is still a valid URL.
func InAddresses(text string) string {
	return queries.ReplaceAllString(users.ReplaceAllString(text, "://xxxxx@"), "${1}xxxxx")
}

// Shown returns an address for logs and reports, with user and password masked and without the query, which may be
// secret.
func Shown(address string) string {
	u, _ := url.Parse(address) // nil with an error
	return ShownURL(u)
}

// ShownURL is Shown for a parsed URL. nil stands for a URL that cannot be parsed, which may have a password anywhere.
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

// repeats match the parts of a file that YAML errors, and errors about URLs in YAML, repeat: the beginning of a value,
// a value that does not match its tag, the name of an anchor (a password *pass without quotes is read as one), an
// invalid key.
var repeats = []struct {
	text *regexp.Regexp
	with string
}{
	{regexp.MustCompile("(?s) ?`.*`"), ""},
	{regexp.MustCompile(`(?s)unknown anchor '.*' referenced`), "unknown anchor: a text that begins with * needs quotes"},
	{regexp.MustCompile(`(?s)invalid map key: .*`), "invalid map key"},
	{regexp.MustCompile(`(?s)parse ".*`), "want an address, got one that cannot be read"},
}

// InYAML returns the text of a YAML error without the values from the file that it repeats, which may be secret.
func InYAML(text string) string {
	const next = "\n  line " // separates several errors
	faults := strings.Split(text, next)
	for i := range faults {
		for _, r := range repeats {
			faults[i] = r.text.ReplaceAllString(faults[i], r.with)
		}
	}
	return strings.Join(faults, next)
}
