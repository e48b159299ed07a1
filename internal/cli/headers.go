package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/openai"
	"replayd/internal/secret"
)

// A login holds the credentials of --api-key and --header. They become the target's credentials, like those of a
// configuration file, so that they are never shown.
type login struct {
	commoncfg.HTTPClientConfig
	flag string // the last one that gave credentials
}

// takeHeaders reads --header. A header that is not a credential becomes a request header of the workload.
func (o *Flags) takeHeaders() {
	const flag = "--header"
	for _, line := range o.Aliases.headers {
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" {
			o.wrong.Add(flag, "want NAME:VALUE, got one without a colon or a name") // it may be a secret
			continue
		}
		switch canonical := http.CanonicalHeaderKey(name); {
		case value == "" || strings.ContainsFunc(value, unicode.IsControl):
			o.wrong.Add(flag, "%q: want a value without line ends, got another, or none", name)
		case canonical == "Authorization":
			if err := o.login.authorize(value); err != nil {
				o.fault(flag, fmt.Errorf("%s: %w", canonical, err))
			}
			o.login.flag = flag
		case canonical == "Proxy-Authorization":
			o.wrong.Add(flag, "Proxy-Authorization: want none: requests go straight to the target, through no proxy")
		case canonical == "Cookie" || secret.IsName(name) && !strings.Contains(value, openai.SessionMark):
			o.fault(flag, o.login.add(name, value))
			o.login.flag = flag
		default:
			o.setHeader(name, value)
		}
	}
}

func (o *Flags) setHeader(name, value string) {
	if o.Workload.Request.Headers == nil {
		o.Workload.Request.Headers = map[string]string{}
	}
	o.Workload.Request.Headers[name] = value
}

func (l *login) authorize(value string) error {
	if l.Authorization != nil || l.BasicAuth != nil {
		return errors.New("want it once")
	}
	scheme, credentials, ok := strings.Cut(value, " ")
	if credentials = strings.TrimSpace(credentials); !ok || credentials == "" {
		return errors.New("want a scheme and its credentials, such as Bearer KEY")
	}
	if !strings.EqualFold(scheme, "basic") {
		l.Authorization = &commoncfg.Authorization{Type: scheme, Credentials: commoncfg.Secret(credentials)}
		return nil
	}
	pair, err := base64.StdEncoding.DecodeString(credentials)
	user, password, ok := strings.Cut(string(pair), ":")
	if err != nil || !ok {
		return errors.New("want USER:PASSWORD in base64 after Basic")
	}
	l.BasicAuth = &commoncfg.BasicAuth{Username: user, Password: commoncfg.Secret(password)}
	return nil
}

// add adds another header that may hold a secret.
func (l *login) add(name, value string) error {
	if l.HTTPHeaders == nil {
		l.HTTPHeaders = &commoncfg.Headers{Headers: map[string]commoncfg.Header{}}
	}
	if _, twice := l.HTTPHeaders.Headers[name]; twice {
		return fmt.Errorf("%s: want it once", name)
	}
	l.HTTPHeaders.Headers[name] = commoncfg.Header{Secrets: []commoncfg.Secret{commoncfg.Secret(value)}}
	return nil
}

// logIn sets the flags' credentials in a target's client configuration.
func (o *Flags) logIn(c *commoncfg.HTTPClientConfig) {
	l := &o.login
	if key := o.Aliases.apiKey; key != "" {
		o.wrong.If(l.Authorization != nil || l.BasicAuth != nil,
			"--api-key", "contradicts --header Authorization: want one of them")
		l.Authorization = &commoncfg.Authorization{Type: "Bearer", Credentials: commoncfg.Secret(key)}
		l.flag = "--api-key"
	}
	o.wrong.If(l.flag != "" && o.client != "", l.flag, "contradicts --http.config.file: want one of them")
	c.Authorization, c.BasicAuth, c.HTTPHeaders = l.Authorization, l.BasicAuth, l.HTTPHeaders
}

// WithScheme returns an address with http:// in front if it has no scheme.
func WithScheme(address string) string {
	if strings.Contains(address, "://") {
		return address
	}
	return "http://" + address
}

// HTTPConfig reads a file of Prometheus' HTTP client configuration. Paths in it are relative to the file. The error
// names the file.
func HTTPConfig(path string) (commoncfg.HTTPClientConfig, error) {
	c, _, err := commoncfg.LoadHTTPConfigFile(path)
	if err != nil {
		return commoncfg.HTTPClientConfig{}, fmt.Errorf("%s: %s", path, secret.InYAML(err.Error()))
	}
	return *c, nil
}

// secretFlags have values that may be secret.
var secretFlags = []string{"--header", "-H", "--extra-inputs", "--api-key"}

// Typed returns a command line as typed, without values that may be secret.
func Typed(args []string) string {
	words := slices.Clone(args)
	hide := false // the previous word was a secret flag or one of its values
	for i, word := range args {
		name, _, joined := strings.Cut(word, "=")
		switch isFlag := strings.HasPrefix(word, "-"); {
		case slices.Contains(secretFlags, name) && joined:
			words[i], hide = name+"=…", false
		case slices.Contains(secretFlags, name):
			hide = true
		case isFlag && strings.HasPrefix(word, "-H"):
			words[i], hide = "-H…", false
		case hide && (slices.Contains(secretFlags, args[i-1]) || isPair(word)):
			words[i] = "…"
		default:
			hide = false
		}
	}
	return "replayd " + secret.InAddresses(strings.Join(words, " "))
}
