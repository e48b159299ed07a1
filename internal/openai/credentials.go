package openai

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/config"

	"replayd/internal/fault"
	"replayd/internal/file"
	"replayd/internal/secret"
)

// A header is one additional header line of a message.
type header struct {
	name, value string
	late        bool // added when the message is written: its value, or another of its name, is in a file
}

// credentials reads authorization and http_headers of the configuration, with their files, and returns the headers and
// the secrets in them.
func (c *Client) credentials() (headers []header, secrets []string, err error) {
	secrets = slices.Clone(c.own)
	cfg := c.target.HTTP
	read := func(key, value, path string) string {
		text, failure := valueOrFile(value, path)
		if failure != nil && err == nil {
			err = fault.At("http."+key, failure)
		}
		return text
	}
	if a := cfg.Authorization; a != nil {
		key := read("authorization.credentials_file", string(a.Credentials), a.CredentialsFile)
		headers = append(headers, header{"Authorization", strings.TrimSpace(a.Type + " " + key), a.CredentialsFile != ""})
		secrets = append(secrets, key)
	}
	if b := cfg.BasicAuth; b != nil {
		user := read("basic_auth.username_file", b.Username, b.UsernameFile)
		password := read("basic_auth.password_file", string(b.Password), b.PasswordFile)
		pair := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
		headers = append(headers, header{"Authorization", "Basic " + pair, b.UsernameFile != "" || b.PasswordFile != ""})
		secrets = append(secrets, password, pair)
	}
	if err != nil {
		return nil, nil, err
	}
	more, hidden, err := headerLines(cfg.HTTPHeaders)
	return append(headers, more...), append(secrets, hidden...), err
}

// headerLines does the same for http_headers.
func headerLines(h *config.Headers) (headers []header, secrets []string, err error) {
	if h == nil {
		return nil, nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) { // the same bytes every time
		h := h.Headers[name]
		late := len(h.Files) > 0
		for _, v := range h.Values {
			headers = append(headers, header{name, v, late})
			if secret.IsName(name) {
				secrets = append(secrets, v)
			}
		}
		for _, v := range h.Secrets {
			headers = append(headers, header{name, string(v), late})
			secrets = append(secrets, string(v))
		}
		for _, path := range h.Files {
			v, err := valueOrFile("", path)
			if err != nil {
				return nil, nil, fault.At("http.http_headers."+name, err)
			}
			headers = append(headers, header{name, v, late})
			secrets = append(secrets, v)
		}
	}
	return headers, secrets, nil
}

// maxSecret bounds a file with a secret, well above the 8 to 16 KiB of headers that servers take.
const maxSecret = 64 << 10

// valueOrFile returns the value, or the present content of its file. An empty file is an error: it is being written, or
// was emptied to remove the key.
func valueOrFile(value, path string) (string, error) {
	if path == "" {
		return value, nil
	}
	b, err := file.Read(path, maxSecret)
	if err != nil {
		return "", err
	}
	if value = strings.TrimSpace(string(b)); value == "" {
		return "", fmt.Errorf("%s: want a value, got an empty file", path)
	}
	return value, nil
}

// secretsIn returns the texts at any depth whose names suggest a secret.
func secretsIn(v any, within bool) (texts []string) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			texts = append(texts, secretsIn(value, within || opens(name))...)
		}
	case []any:
		for _, value := range v {
			texts = append(texts, secretsIn(value, within)...)
		}
	case string:
		if within {
			texts = append(texts, v)
		}
	}
	slices.Sort(texts)
	return texts
}

// opens reports whether the name of a text in a body suggests a secret. tokenizer and stop_token_strings do not,
// although they contain "token".
func opens(name string) bool {
	name = strings.ToLower(name)
	return secret.IsName(name) && (strings.HasSuffix(name, "token") || strings.HasSuffix(name, "tokens") || secret.IsName(strings.ReplaceAll(name, "token", "")))
}

// secrets returns the values of the headers whose names suggest a secret, without the session's id.
func (m *RequestFields) secrets() []string {
	var secrets []string
	for name, value := range m.Headers {
		if !secret.IsName(name) {
			continue
		}
		for text := range strings.SplitSeq(value, SessionMark) {
			if text != "" {
				secrets = append(secrets, text)
			}
		}
	}
	for _, value := range m.Own { // a server's text may repeat them
		secrets = append(secrets, value)
	}
	return secrets
}
