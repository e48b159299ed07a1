package cli

import (
	"fmt"
	"strings"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/secret"
)

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
