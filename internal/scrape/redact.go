package scrape

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	commoncfg "github.com/prometheus/common/config"
)

// Shown is an address as logs and reports may have it: without user, password and query, which may be secret.
func Shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		u = nil
	}
	return shownURL(u)
}

// shownURL is that of a URL; one that could not be read may hide a password anywhere.
func shownURL(u *url.URL) string {
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

// told is what a request proved itself with: the headers that it wrote, and what the options have besides.
type told struct {
	mu      sync.Mutex
	secrets []string
}

// watch has a request's headers noted as they are written: credentials are read from files and made into headers far
// below, and a server that is no HTTP server gives no answer that would lead back to them.
func (t *told) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(name string, values []string) {
		switch name {
		case "Host", "User-Agent", "Accept", "Accept-Encoding", "Connection", "Referer": // ours, and no secrets
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, v := range values {
			if name == "Authorization" || name == "Proxy-Authorization" {
				_, v, _ = strings.Cut(v, " ")
				if pair, err := base64.StdEncoding.DecodeString(v); err == nil {
					user, password, _ := strings.Cut(string(pair), ":")
					t.secrets = append(slices.Clip(t.secrets), user, password) // some have a token for a user
				}
			}
			t.secrets = append(slices.Clip(t.secrets), v)
		}
	}})
}

// secretsOf are those of a configuration that stand in no header of a request for a page: what a proxy is given, and what a
// server of tokens is given, whose words come back in errors.
func secretsOf(c commoncfg.HTTPClientConfig) []string {
	var secrets []string
	if u := c.ProxyURL.URL; u != nil && u.User != nil {
		password, _ := u.User.Password()
		secrets = append(secrets, password, base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
	}
	if o := c.OAuth2; o != nil {
		secrets = append(secrets, string(o.ClientSecret))
		for _, v := range o.EndpointParams {
			secrets = append(secrets, v)
		}
	}
	return secrets
}

// A redacted error does not say what the one in it would.
type redacted struct {
	text string
	err  error
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.err }

// without takes out of an error what the request proved itself with, also a part of it that stands where a text was cut: some
// servers repeat the key that they refuse. Secrets under 4 bytes stay: replacing them would leave no text and hide nothing.
func (t *told) without(err error) error {
	const masked, least = "<secret>", 4
	t.mu.Lock()
	all := spelt(t.secrets)
	t.mu.Unlock()
	text := err.Error()
	for _, s := range all {
		if len(s) >= least {
			text = strings.ReplaceAll(text, s, masked)
		}
	}
	longest := 0
	if len(all) > 0 {
		longest = len(all[0])
	}
	for part := min(longest, len(text)); part >= least; part-- {
		for _, s := range all {
			if part < len(s) {
				text = strings.ReplaceAll(text, s[:part]+"…", masked+"…")
			}
		}
	}
	if text == err.Error() {
		return err
	}
	return &redacted{text, err}
}

// spelt are secrets as a server, or an error, may write them, the longest first: one may be the beginning of another.
func spelt(secrets []string) []string {
	var all []string
	for _, s := range secrets {
		inJSON, _ := json.Marshal(s) // a string always can be
		quoted := strconv.Quote(s)
		plain := string(inJSON[1 : len(inJSON)-1])
		all = append(all, s, strings.ReplaceAll(s, "/", `\/`), plain, strings.ReplaceAll(plain, "/", `\/`), quoted[1:len(quoted)-1],
			url.QueryEscape(s), url.PathEscape(s), (&url.URL{Path: "/" + s}).EscapedPath()[1:], html.EscapeString(s))
	}
	for _, s := range slices.Clone(all) { // what a server wrote stands in quotes in most errors
		quoted := strconv.Quote(s)
		all = append(all, quoted[1:len(quoted)-1])
	}
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(all)
}
