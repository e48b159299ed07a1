//go:build prometheus

// Package prometheus_test tests replayd's metrics page with curl and a real Prometheus, over TLS and with a password:
// `make suite NAME=test-prometheus`.
package prometheus_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/test/machine"
	"replayd/test/outside"
)

const (
	user     = "prometheus"
	password = "secret"
	hash     = "$2a$04$4edF.6YLvdOTjChNtKGpwe9YFz6VVIzSVmRJiqGOsl9sfF3YQSMsu" // bcrypt of the password

	firstToken = 50 * time.Millisecond // of the simulated engine
	rowGap     = 50 * time.Millisecond // between two rows: 20 requests/s
	rows       = 200                   // 10 s of trace, in a loop
)

// binary is replayd, built once.
var binary string

func TestMain(m *testing.M) {
	machine.Settle()
	os.Exit(outside.Main(m, &binary))
}

// A service is a daemon behind TLS and a password that replays against a simulated engine in another process.
type service struct {
	address string // host:port
	url     string
	ca      string // file
}

// startService starts the engine and the daemon. They end with the test.
func startService(t *testing.T) service {
	t.Helper()
	dir := t.TempDir()
	s := service{address: outside.Address(t), ca: filepath.Join(dir, "cert.pem")}
	s.url = "https://" + s.address
	client := outside.Certificate(t, dir)

	engine := outside.Address(t)
	start(t, filepath.Join(dir, "sim.out"), http.DefaultClient, "http://"+engine+"/health",
		binary, "sim", "--web.listen-address", engine, "--ttft", firstToken.String(), "--itl", "2ms")
	var trace strings.Builder
	for i := range rows {
		fmt.Fprintf(&trace, `{"timestamp": %d, "input_length": 100, "output_length": 8}`+"\n", i*int(rowGap.Milliseconds()))
	}
	path := outside.Write(t, dir, "trace.jsonl", trace.String())
	outside.Write(t, dir, "web.yaml", "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\nbasic_auth_users: {"+user+": "+hash+"}\n")
	outside.Write(t, dir, "replayd.yaml", fmt.Sprintf(`
web: {listen: %q, config_file: %q, enable_lifecycle: true}
targets: [{name: sim, url: "http://%s"}]
workloads: [{name: steady, trace: {path: %q}, repeat: {align: start, every: 10s}}]
`, s.address, filepath.Join(dir, "web.yaml"), engine, path))
	start(t, filepath.Join(dir, "serve.out"), client, "https://"+user+":"+password+"@"+s.address+"/-/ready",
		binary, "serve", "--config", filepath.Join(dir, "replayd.yaml"))
	return s
}

// start runs a program, waits until it is ready, and ends it with the test. It must then end when it is asked to.
func start(t *testing.T, log string, client *http.Client, url, program string, args ...string) {
	t.Helper()
	p := outside.Start(t, log, program, args...)
	t.Cleanup(func() { p.Term(t) })
	p.Ready(t, client, url)
}
