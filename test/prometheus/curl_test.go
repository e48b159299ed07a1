//go:build prometheus

package prometheus_test

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"replayd/test/outside"
)

// curl's exit codes.
const (
	curlOK          = 0
	curlNotVerified = 60 // the peer's certificate
)

// TestCurl expects no page without the password, none without TLS, and a verified certificate.
func TestCurl(t *testing.T) {
	program, err := exec.LookPath("curl")
	if err != nil {
		outside.Missing(t, err, "curl")
	}
	s := startService(t)
	curl := func(args ...string) (code int, status, body string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, append([]string{
			"--silent", "--noproxy", "*", "--max-time", "10", "--write-out", "%{stderr}%{http_code}",
		}, args...)...)
		var out, meta bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &meta
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), meta.String(), out.String()
	}
	f := func(wantCode int, wantStatus, wantBody string, args ...string) {
		t.Helper()
		code, status, body := curl(args...)
		if code != wantCode || status != wantStatus || !strings.Contains(body, wantBody) {
			t.Errorf("curl %q: want exit %d, status %s, %q, got %d, %s, %.200q", args, wantCode, wantStatus, wantBody, code, status, body)
			return
		}
		t.Logf("exit %d, status %s: curl %s", code, status, strings.ReplaceAll(strings.Join(args, " "), s.ca, "cert.pem"))
	}
	const right, wrong = user + ":" + password, user + ":wrong"
	for _, path := range []string{"/metrics", "/-/healthy", "/config", "/live", "/runbook", "/"} {
		f(curlOK, "401", "Unauthorized", "--cacert", s.ca, s.url+path)
		f(curlOK, "401", "Unauthorized", "--cacert", s.ca, "--user", wrong, s.url+path)
		f(curlOK, "200", "", "--cacert", s.ca, "--user", right, s.url+path)
	}
	f(curlOK, "401", "Unauthorized", "--cacert", s.ca, "--user", "nobody:"+password, s.url+"/metrics")
	f(curlOK, "200", "# TYPE replayd_ttft_seconds histogram\n", "--cacert", s.ca, "--user", right, s.url+"/metrics")
	f(curlOK, "200", "# TYPE replayd_ttft_seconds histogram\n", "--cacert", s.ca, "--user", right, "--http1.1", "--compressed", s.url+"/metrics")
	f(curlOK, "200", "\n# EOF\n", "--cacert", s.ca, "--user", right, "--header", "Accept: application/openmetrics-text", s.url+"/metrics")
	f(curlNotVerified, "000", "", "--user", right, s.url+"/metrics")
	f(curlOK, "400", "Client sent an HTTP request to an HTTPS server.", "--user", right, "http://"+s.address+"/metrics")
	f(curlOK, "401", "Unauthorized", "--cacert", s.ca, "--request", "POST", s.url+"/-/pause")
	f(curlOK, "405", "Method Not Allowed", "--cacert", s.ca, "--user", right, s.url+"/-/pause")
	f(curlOK, "403", "cross-origin", "--cacert", s.ca, "--user", right, "--header", "Sec-Fetch-Site: cross-site", "--request", "POST", s.url+"/-/pause")
	f(curlOK, "404", "want the name of a workload", "--cacert", s.ca, "--user", right, "--data", "workload=nobody", s.url+"/-/pause")
	f(curlOK, "200", "The configuration is reloaded.\n", "--cacert", s.ca, "--user", right, "--request", "POST", s.url+"/-/reload")
}

// TestCommands checks that replayd's own commands reach the daemon with the file of Prometheus' tools.
func TestCommands(t *testing.T) {
	s := startService(t)
	file := outside.Write(t, t.TempDir(), "client.yaml",
		"basic_auth: {username: "+user+", password: "+password+"}\ntls_config: {ca_file: "+s.ca+"}\n")
	f := func(wantCode int, want string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, args...)
		said, _ := cmd.CombinedOutput() // the exit code is enough
		if code := cmd.ProcessState.ExitCode(); code != wantCode || !strings.Contains(string(said), want) {
			t.Errorf("%s %q: want exit %d, %q, got %d, %q", filepath.Base(binary), args, wantCode, want, code, said)
		}
	}
	f(0, "replayd is healthy.\n", "health", s.url, "--http.config.file", file)
	f(1, "certificate signed by unknown authority", "health", s.url)
	f(1, "Client sent an HTTP request to an HTTPS server.", "health", s.address)
	f(0, "Workload \"steady\" is paused.\n", "pause", s.url, "--http.config.file", file, "--workload", "steady")
	f(0, "All workloads are resumed.\n", "resume", s.url, "--http.config.file", file)
}
