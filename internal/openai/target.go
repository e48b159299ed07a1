package openai

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/prometheus/common/config"
)

// An endpoint is a target's URL taken apart.
type endpoint struct {
	secure  bool
	host    string // as the Host header has it
	name    string // host without port and brackets, for the certificate
	address string // host:port to dial
	prefix  string // path before /v1, without a trailing slash
}

// CheckURL says why requests cannot go to an address. The text shows no password.
func CheckURL(raw string) error {
	_, err := parseURL(raw)
	return err
}

func parseURL(raw string) (endpoint, error) {
	if raw == "" {
		return endpoint{}, errors.New("url: want http://HOST:PORT, got none")
	}
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		// url.Error repeats its input, and with it a password.
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		if strings.Contains(raw, "@") { // it repeats the part that it could not read, too
			err = errors.New("want an address, got one that is none and has an @ in it")
		}
		return endpoint{}, fmt.Errorf("url: %w", err)
	}
	e := endpoint{secure: u.Scheme == "https", host: u.Host, name: u.Hostname()}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return e, fmt.Errorf("url: want scheme http or https, got %q", u.Scheme)
	case e.name == "":
		return e, errors.New("url: want a host, got none")
	case u.User != nil:
		return e, errors.New("url: want no user or password in it: use http.basic_auth")
	case u.RawQuery != "" || u.Fragment != "":
		return e, fmt.Errorf("url: want no query and no fragment, got %q", u.Redacted())
	}
	port := u.Port()
	if port == "" {
		port = "80"
		if e.secure {
			port = "443"
		}
	}
	e.address = net.JoinHostPort(e.name, port)
	e.prefix = strings.TrimRight(u.EscapedPath(), "/")
	for _, api := range []string{"/v1", "/v1/chat/completions", "/v1/completions"} {
		if prefix, ok := strings.CutSuffix(e.prefix, api); ok {
			e.prefix = prefix
			break
		}
	}
	return e, nil
}

func (e endpoint) String() string {
	scheme := "http://"
	if e.secure {
		scheme = "https://"
	}
	return scheme + e.host + e.prefix
}

// ownHeaders may not be set by http_headers; prometheus/common refuses some others itself.
var ownHeaders = []string{"Accept", "Expect", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "X-Request-Id"}

// checkHTTP refuses what cannot be honoured. Redirects are never followed and HTTP/2 is never spoken, whatever
// follow_redirects and enable_http2 say: both are true in prometheus/common's defaults, so a wish cannot be told apart.
func checkHTTP(cfg config.HTTPClientConfig) (config.HTTPClientConfig, error) {
	if cfg.Authorization != nil {
		a := *cfg.Authorization // Validate writes to it
		cfg.Authorization = &a
	}
	if err := cfg.Validate(); err != nil {
		return cfg, fmt.Errorf("http: %w", err)
	}
	var errs []error
	refuse := func(bad bool, key, why string) {
		if bad {
			errs = append(errs, fmt.Errorf("http.%s: %s", key, why))
		}
	}
	const noProxy = "want none: requests go straight to the target, a proxy would be measured with it"
	refuse(cfg.OAuth2 != nil, "oauth2", "want none: not supported, use authorization.credentials_file")
	refuse(cfg.ProxyURL.URL != nil && cfg.ProxyURL.String() != "", "proxy_url", noProxy)
	refuse(cfg.ProxyFromEnvironment, "proxy_from_environment", noProxy)
	refuse(cfg.NoProxy != "", "no_proxy", noProxy)
	const noSecrets = "want none: there is no secret manager here, use the matching _file"
	if b := cfg.BasicAuth; b != nil {
		refuse(b.UsernameRef != "", "basic_auth.username_ref", noSecrets)
		refuse(b.PasswordRef != "", "basic_auth.password_ref", noSecrets)
	}
	if a := cfg.Authorization; a != nil {
		refuse(a.CredentialsRef != "", "authorization.credentials_ref", noSecrets)
	}
	t := cfg.TLSConfig
	refuse(t.CARef != "", "tls_config.ca_ref", noSecrets)
	refuse(t.CertRef != "", "tls_config.cert_ref", noSecrets)
	refuse(t.KeyRef != "", "tls_config.key_ref", noSecrets)
	if cfg.HTTPHeaders != nil {
		for name := range cfg.HTTPHeaders.Headers {
			refuse(!isToken(name), "http_headers", fmt.Sprintf("want a header name, got %q", name))
			for _, own := range ownHeaders {
				refuse(strings.EqualFold(name, own), "http_headers", own+" is set by replayd")
			}
		}
	}
	return cfg, errors.Join(errs...)
}

// isToken reports whether s may stand as a header's name (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
