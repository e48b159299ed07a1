package web

import (
	"fmt"
	"os"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
)

// A ConfigError says what is wrong with the web configuration file.
type ConfigError struct {
	File string
	Err  error
}

func (e *ConfigError) Error() string { return fmt.Sprintf("web.config_file: %s: %v", e.File, e.Err) }

// Unwrap gives the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// schemeOf checks a web configuration file, "" for none, and tells how the server will speak: exporter-toolkit serves
// plain HTTP when the file has no TLS section.
func schemeOf(file string) (string, error) {
	if file == "" {
		return "http", nil
	}
	if err := web.Validate(file); err != nil {
		return "", err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var c struct {
		TLS web.TLSConfig `yaml:"tls_server_config"`
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return "", err
	}
	if c.TLS.IsEnabled() {
		return "https", nil
	}
	return "http", nil
}
