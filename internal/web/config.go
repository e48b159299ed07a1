package web

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"

	"replayd/internal/secret"
)

// A ConfigError is an error in the web configuration file.
type ConfigError struct {
	File string
	Err  error
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("web.config_file: %s: %s", e.File, secret.InYAML(e.Err.Error()))
}

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// A servingError is an error while serving. The web configuration may have become invalid after the start.
type servingError struct{ err error }

func (e servingError) Error() string { return secret.InYAML(e.err.Error()) }
func (e servingError) Unwrap() error { return e.err }

// withoutValues removes values of the web configuration from exporter-toolkit's log. exporter-toolkit reads the file
// again for each request and logs errors with values from it.
type withoutValues struct{ slog.Handler }

// Handle implements slog.Handler.
func (h withoutValues) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" {
			a.Value = slog.StringValue(secret.InYAML(a.Value.String()))
		}
		clean.AddAttrs(a)
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

// maxConfig is the maximum size in bytes of a web configuration file when the server starts.
const maxConfig = 1 << 20

// CheckConfig returns an error if a web configuration file is invalid; "" stands for no file.
func CheckConfig(file string) error {
	_, err := schemeOf(file)
	if err != nil {
		return &ConfigError{file, err}
	}
	return nil
}

// schemeOf checks a web configuration file, "" for none, and returns http or https: exporter-toolkit serves plain HTTP
// if the file has no TLS section.
func schemeOf(file string) (string, error) {
	if file == "" {
		return "http", nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxConfig {
		return "", fmt.Errorf("want at most %d bytes, got more", maxConfig)
	}
	if err := web.Validate(file); err != nil {
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
