package secret

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"

	commoncfg "github.com/prometheus/common/config"
)

// Sent collects the credentials of one request: the headers that it sends and those that its configuration has besides.
type Sent struct {
	mu      sync.Mutex
	secrets []string
}

// NewSent returns a Sent with secrets that are in no header of the request: see OfClient.
func NewSent(further []string) *Sent { return &Sent{secrets: further} }

// Watch records the request's headers as they are written. The transport reads credentials from files and adds the
// headers itself, and if the server does not speak HTTP, there is no response from which to read them.
func (s *Sent) Watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(name string, values []string) {
		// HTTP/2 writes header names in lower case, and the request line as names that begin with a colon.
		if strings.HasPrefix(name, ":") {
			return
		}
		switch name = http.CanonicalHeaderKey(name); name {
		case "Host", "User-Agent", "Accept", "Accept-Encoding", "Connection", "Referer": // set by replayd, not secret
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, v := range values {
			if name == "Authorization" || name == "Proxy-Authorization" {
				_, v, _ = strings.Cut(v, " ")
				if pair, err := base64.StdEncoding.DecodeString(v); err == nil {
					user, password, _ := strings.Cut(string(pair), ":")
					s.secrets = append(slices.Clip(s.secrets), user, password) // some clients send a token as the user
				}
			}
			s.secrets = append(slices.Clip(s.secrets), v)
		}
	}})
}

// Set returns the credentials that were sent so far, with the members of other sets.
func (s *Sent) Set(more ...Set) Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return NewSet(s.secrets, more...)
}

// OfClient returns the secrets of a client's configuration that are in no header of its requests: the credentials of the
// proxy and of the OAuth2 token server. Errors can repeat them.
func OfClient(c commoncfg.HTTPClientConfig) []string {
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
