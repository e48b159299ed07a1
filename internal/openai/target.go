package openai

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/common/config"
	"golang.org/x/net/http/httpguts"

	"replayd/internal/fault"
)

// ownHeaders may not be set by http_headers; prometheus/common refuses some others itself.
var ownHeaders = []string{"Accept", "Expect", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "X-Request-Id"}

// checkHTTP refuses what cannot be honored. Redirects are never followed and HTTP/2 is never spoken, whatever
// follow_redirects and enable_http2 say: both are true in prometheus/common's defaults, so a wish cannot be told apart.
func checkHTTP(cfg config.HTTPClientConfig) (config.HTTPClientConfig, error) {
	if cfg.Authorization != nil {
		cfg.Authorization = new(*cfg.Authorization) // Validate writes to it
	}
	if err := cfg.Validate(); err != nil {
		return cfg, fault.At("http", err)
	}
	var f fault.List
	refuse := func(bad bool, key, why string) {
		f.If(bad, "http."+key, "%s", why)
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
			refuse(!httpguts.ValidHeaderFieldName(name), "http_headers", fmt.Sprintf("want a header name, got %q", name))
			for _, own := range ownHeaders {
				refuse(strings.EqualFold(name, own), "http_headers", own+" is set by replayd")
			}
		}
	}
	return cfg, f.Err()
}

// isHost matches the value of a Host header (RFC 9110, 7.2), or an empty one.
var isHost = regexp.MustCompile(`^([A-Za-z0-9._~-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])?(:[0-9]{1,5})?$`)
