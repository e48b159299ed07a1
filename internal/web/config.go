package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"

	"replayd/internal/fault"
	"replayd/internal/file"
	"replayd/internal/secret"
)

// ConfigFile is the key of the fault of an invalid web configuration file.
const ConfigFile = "web.config_file"

// configError returns the fault of a file without the values in it.
func configError(err error) error {
	f := fault.At(ConfigFile, err)[0]
	f.Want = strings.ReplaceAll(secret.InYAML(f.Want), "\n", ";")
	return f
}

// A servingError is an error while serving. The web configuration may have become invalid after the start.
type servingError struct{ err error }

func (e servingError) Error() string { return secret.InYAML(e.err.Error()) }
func (e servingError) Unwrap() error { return e.err }

// withoutValues removes values of the web configuration from exporter-toolkit's log. exporter-toolkit reads the file
// again for each request and logs errors with values from it.
type withoutValues struct{ slog.Handler }

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
	if _, err := schemeOf(file); err != nil {
		return configError(err)
	}
	return nil
}

// schemeOf checks a web configuration file, "" for none, and returns http or https: exporter-toolkit serves plain HTTP
// if the file has no TLS section. Its error names the file.
func schemeOf(path string) (string, error) {
	if path == "" {
		return "http", nil
	}
	text, err := file.Read(path, maxConfig)
	if _, open := errors.AsType[*fs.PathError](err); open {
		err = fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		return "", err
	}
	var c struct {
		TLS web.TLSConfig `yaml:"tls_server_config"`
	}
	faulty := yaml.Unmarshal(text, &c)
	c.TLS.SetDirectory(filepath.Dir(path))
	for _, path := range []string{c.TLS.TLSCertPath, c.TLS.TLSKeyPath, c.TLS.ClientCAs} {
		if err := file.Check(path, false); err != nil { // exporter-toolkit opens them, and would wait for the writer of a pipe
			return "", fmt.Errorf("%s: %w", path, err)
		}
	}
	if err := cmp.Or(web.Validate(path), faulty); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if c.TLS.IsEnabled() {
		return "https", nil
	}
	return "http", nil
}
