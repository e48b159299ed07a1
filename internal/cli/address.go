package cli

import (
	"fmt"
	"strings"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/secret"
)

// WithScheme is an address that may have been typed without http://.
func WithScheme(address string) string {
	if strings.Contains(address, "://") {
		return address
	}
	return "http://" + address
}

// HTTPConfig reads a file of Prometheus' HTTP client configuration. Paths in it begin where it lies. The error names the file.
func HTTPConfig(path string) (commoncfg.HTTPClientConfig, error) {
	c, _, err := commoncfg.LoadHTTPConfigFile(path)
	if err != nil {
		return commoncfg.HTTPClientConfig{}, fmt.Errorf("%s: %s", path, secret.InYAML(err.Error()))
	}
	return *c, nil
}
