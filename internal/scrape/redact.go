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

// told is what a request proved itself with: the headers that it wrote, and what the options have besides.
type told struct {
	mu      sync.Mutex
	secrets []string
}

// watch has a request's headers noted as they are written: credentials are read from files and made into headers far
// below, and a server that is no HTTP server gives no answer that would lead back to them.
func (t *told) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(name string, values []string) {
		// HTTP/2 writes them in small letters, and the request's line as some that begin with a colon.
		if strings.HasPrefix(name, ":") {
			return
		}
		switch name = http.CanonicalHeaderKey(name); name {
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
// servers repeat the key that they refuse.
func (t *told) without(err error) error {
	t.mu.Lock()
	all := secret.NewSet(t.secrets)
	t.mu.Unlock()
	if text := all.HideCut(err.Error(), "…"); text != err.Error() {
		return &redacted{text, err}
	}
	return err
}
