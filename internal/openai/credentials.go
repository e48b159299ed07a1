package openai

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/prometheus/common/config"

	"replayd/internal/secret"
)

// A header is one line that a message carries beside the usual ones.
type header struct {
	name, value string
	late        bool // from a file, or beside one: it is put in when the message is written
}

// credentials reads the authorization and http_headers of the configuration, its files as they are now, and gives what is
// secret in them.
func (c *Client) credentials() (headers []header, secrets []string, err error) {
	secrets = slices.Clone(c.own)
	cfg := c.target.HTTP
	if a := cfg.Authorization; a != nil {
		key, err := valueOrFile(string(a.Credentials), a.CredentialsFile)
		if err != nil {
			return nil, nil, fmt.Errorf("http.authorization.credentials_file: %w", err)
		}
		headers = append(headers, header{"Authorization", strings.TrimSpace(a.Type + " " + key), a.CredentialsFile != ""})
		secrets = append(secrets, key)
	}
	if b := cfg.BasicAuth; b != nil {
		user, err := valueOrFile(b.Username, b.UsernameFile)
		if err != nil {
			return nil, nil, fmt.Errorf("http.basic_auth.username_file: %w", err)
		}
		password, err := valueOrFile(string(b.Password), b.PasswordFile)
		if err != nil {
			return nil, nil, fmt.Errorf("http.basic_auth.password_file: %w", err)
		}
		pair := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
		headers = append(headers, header{"Authorization", "Basic " + pair, b.UsernameFile != "" || b.PasswordFile != ""})
		secrets = append(secrets, password, pair)
	}
	more, hidden, err := headerLines(cfg.HTTPHeaders)
	return append(headers, more...), append(secrets, hidden...), err
}

// headerLines reads http_headers likewise.
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
		for _, file := range h.Files {
			v, err := valueOrFile("", file)
			if err != nil {
				return nil, nil, fmt.Errorf("http.http_headers.%s: %w", name, err)
			}
			headers = append(headers, header{name, v, late})
			secrets = append(secrets, v)
		}
	}
	return headers, secrets, nil
}

// maxSecret bounds a file with a secret, well above the 8 to 16 KiB of headers that servers take.
const maxSecret = 64 << 10

// valueOrFile is a value, or what its file has now. A file that is empty is one that is being written, or was emptied to take
// the key away.
func valueOrFile(value, file string) (string, error) {
	if file == "" {
		return value, nil
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would wait for who writes to it
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(fmt.Errorf("%s: want a regular file", file), err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	value = strings.TrimSpace(string(b))
	switch {
	case err != nil:
		return "", err
	case len(b) > maxSecret:
		return "", fmt.Errorf("%s: want at most %d bytes, got more", file, maxSecret)
	case value == "":
		return "", fmt.Errorf("%s: want a value, got an empty file", file)
	}
	return value, nil
}

// secretsIn are the texts under names that sound like a secret, at any depth.
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

// opens says of the name of a text in a body whether it sounds like a secret: tokenizer and stop_token_strings do not, though
// they speak of tokens.
func opens(name string) bool {
	name = strings.ToLower(name)
	return secret.IsName(name) && (strings.HasSuffix(name, "token") || strings.HasSuffix(name, "tokens") || secret.IsName(strings.ReplaceAll(name, "token", "")))
}

// secrets are the values of headers whose names sound like it.
func (m *RequestFields) secrets() []string {
	var secrets []string
	for name, value := range m.Headers {
		if secret.IsName(name) {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// maxRequestSecrets bounds how many secrets of request headers are remembered: those of 16 workloads with all the headers that they may have.
const maxRequestSecrets = 256

// hide remembers values that no error text may show, the newest of them.
func (c *Client) hide(values []string) {
	for _, v := range values {
		for {
			old := c.requestSecrets.Load()
			var known []string
			if old != nil {
				known = old.values
			}
			if slices.Contains(known, v) {
				break
			}
			known = append(slices.Clone(known[max(0, len(known)+1-maxRequestSecrets):]), v)
			if c.requestSecrets.CompareAndSwap(old, hide(known)) {
				break
			}
		}
	}
}
