package scrape

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/secret"
)

// told collects the credentials of one request: the headers that it sends and the secrets of the options.
type told struct {
	mu      sync.Mutex
	secrets []string
}

// watch records the request's headers as they are written. The transport reads credentials from files and adds the
// headers itself, and if the server does not speak HTTP, there is no response from which to read them.
func (t *told) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(name string, values []string) {
		// HTTP/2 writes header names in lower case, and the request line as names that begin with a colon.
		if strings.HasPrefix(name, ":") {
			return
		}
		switch name = http.CanonicalHeaderKey(name); name {
		case "Host", "User-Agent", "Accept", "Accept-Encoding", "Connection", "Referer": // set by replayd, not secret
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, v := range values {
			if name == "Authorization" || name == "Proxy-Authorization" {
				_, v, _ = strings.Cut(v, " ")
				if pair, err := base64.StdEncoding.DecodeString(v); err == nil {
					user, password, _ := strings.Cut(string(pair), ":")
					t.secrets = append(slices.Clip(t.secrets), user, password) // some clients send a token as the user
				}
			}
			t.secrets = append(slices.Clip(t.secrets), v)
		}
	}})
}

// secretsOf returns the secrets of a configuration that are in no header of the request: the proxy's credentials and
// those for the OAuth2 token server, which errors can repeat.
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

// A redacted error has the text of err without secrets.
type redacted struct {
	text string
	err  error
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.err }

// without masks the credentials of the request in an error, even if truncation has cut them. Some servers repeat the
// key that they reject.
func (t *told) without(err error) error {
	t.mu.Lock()
	all := secret.NewSet(t.secrets)
	t.mu.Unlock()
	if text := all.HideCut(err.Error(), "…"); text != err.Error() {
		return &redacted{text, err}
	}
	return err
}
