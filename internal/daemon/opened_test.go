package daemon

import (
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/config"
	"replayd/test/machine"
)

// No file of a configuration is waited for: each is refused where it is a pipe or a device, before a library opens it.
func TestNoFileIsWaitedFor(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		machine.Lacks(t, "named pipes", err)
	}
	trace := write(t, "good.jsonl", rows(1))
	tls := write(t, "web.yaml", "tls_server_config: {cert_file: "+pipe+", key_file: "+pipe+"}")
	for key, set := range map[string]func(c *config.Config, path string){
		"state.path":                         func(c *config.Config, path string) { c.State = config.State{Path: path} },
		"web.config_file":                    func(c *config.Config, path string) { c.Web.ConfigFile = path },
		"workloads[0].trace.path":            func(c *config.Config, path string) { c.Workloads[0].Trace.Path = path },
		"targets[0].tokenizer":               func(c *config.Config, path string) { c.Targets[0].Tokenizer = path },
		"targets[0].http.tls_config.ca_file": func(c *config.Config, path string) { c.Targets[0].HTTP.TLSConfig.CAFile = path },
		"targets[0].http.basic_auth.password_file": func(c *config.Config, path string) {
			c.Targets[0].HTTP.BasicAuth = &commoncfg.BasicAuth{Username: "u", PasswordFile: path}
		},
		"targets[0].http.http_headers.X-Key.files[0]": func(c *config.Config, path string) {
			c.Targets[0].HTTP.HTTPHeaders = &commoncfg.Headers{Headers: map[string]commoncfg.Header{"X-Key": {Files: []string{path}}}}
		},
		"targets[0].metrics.http.tls_config.key_file": func(c *config.Config, path string) { c.Targets[0].Metrics.HTTP.TLSConfig.KeyFile = path },
		"gpus[0].http.authorization.credentials_file": func(c *config.Config, path string) {
			c.GPUs = []config.GPU{config.DefaultGPU()}
			c.GPUs[0].Target, c.GPUs[0].DCGMExporter = "t", nobody
			c.GPUs[0].HTTP.Authorization = &commoncfg.Authorization{CredentialsFile: path}
		},
		"workloads[0].dataset.path": func(c *config.Config, path string) {
			c.Workloads[0].Trace.Path, c.Workloads[0].Dataset = "", config.Dataset{Path: path, Format: "single_turn"}
			c.Workloads[0].Arrival, c.Workloads[0].Rate = "constant", 1
		},
	} {
		for path, kind := range map[string]string{pipe: "a pipe", "/dev/zero": "a device"} {
			c := conf([]config.Target{target("t", nobody)}, once("w", "t", trace))
			set(&c, path)
			want := "want a file, got " + kind
			if key == "targets[0].tokenizer" {
				want = "want a file or a folder, got "
			}
			if got := strings.Join(checkedFaults(t, c, key), "; "); !strings.Contains(got, want) {
				t.Errorf("%s: want %q, got %q, of all %v", key, want, got, Check(t.Context(), c, slog.New(slog.DiscardHandler), nil))
			}
		}
	}
	c := conf([]config.Target{target("t", nobody)}, once("w", "t", trace))
	c.Web.ConfigFile = tls
	if got := strings.Join(checkedFaults(t, c, "web.config_file"), "; "); !strings.Contains(got, pipe+": want a file, got a pipe") {
		t.Errorf("a certificate: got %q", got)
	}
}
