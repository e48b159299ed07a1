//go:build real

package image_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"replayd/test/outside"
)

// The container trusts servers by the image's certificates only. A server of another authority is refused until that
// authority is in the file, which a company replaces by a mount.
func TestCertificates(t *testing.T) {
	c := inside(t, "replayd", bare)
	if c == nil {
		return
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "trace.jsonl"), strings.Repeat(`{"timestamp": 0, "input_length": 64, "output_length": 4}`+"\n", 3))
	engine := outside.Start(t, filepath.Join(c.dir, "sim.out"), filepath.Join(c.root, "usr/bin/replayd"), "sim")
	engine.Ready(t, http.DefaultClient, "http://127.0.0.1:8000/health")
	at, err := url.Parse("http://127.0.0.1:8000")
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(at)
	proxy.FlushInterval = -1
	server := httptest.NewUnstartedServer(proxy)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	server.StartTLS()
	defer server.Close()
	c.mount(t, dir, "/traces")
	c.seal(t)
	replay := []string{"/usr/bin/replayd", "run", "/traces/trace.jsonl", "--url", server.URL}
	if code, said := c.exec(t, replay...); code != 1 || !strings.Contains(said, "certificate signed by unknown authority") {
		t.Errorf("want exit 1 for an unknown authority, got %d:\n%s", code, said)
	}
	bundle, err := os.ReadFile(filepath.Join(c.root, certificates))
	if err != nil {
		t.Fatal(err)
	}
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	write(t, filepath.Join(dir, "bundle.crt"), string(bundle)+string(own))
	c.mount(t, filepath.Join(dir, "bundle.crt"), certificates)
	if code, said := c.exec(t, replay...); code != 0 {
		t.Errorf("want exit 0 with the authority in %s, got %d:\n%s", certificates, code, said)
	}
}

// `docker run IMAGE demo` can write the sample to the image's own /tmp.
func TestDemo(t *testing.T) {
	c := inside(t, "replayd", bare)
	if c == nil {
		return
	}
	c.memory(t, "/tmp")
	c.seal(t)
	if code, said := c.exec(t, "/usr/bin/replayd", "demo", "--web.listen-address", ":9797", "--duration", "2s"); code != 0 || !strings.Contains(said, ":9797/live") {
		t.Errorf("want exit 0 and the page's address, got %d:\n%s", code, said)
	}
}

// Our two services of compose.yaml, with its commands, mounts and health checks: requests end ok, the GPU is read, and
// records are kept.
func TestCompose(t *testing.T) {
	c := inside(t, "replayd", bare)
	if c == nil {
		return
	}
	text, err := os.ReadFile(repository + "/deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Command, Volumes, Tmpfs []string
			Healthcheck             struct{ Test []string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	engine, replayd := file.Services["sim"], file.Services["replayd"]
	for _, v := range replayd.Volumes {
		from, to, _ := strings.Cut(strings.TrimSuffix(v, ":ro"), ":")
		if strings.HasPrefix(from, ".") {
			c.mount(t, filepath.Join(repository, "deploy", from), to)
		} else {
			c.memory(t, to)
		}
	}
	for _, to := range replayd.Tmpfs {
		c.memory(t, to)
	}
	hosts := filepath.Join(t.TempDir(), "hosts")
	write(t, hosts, "127.0.0.1 sim\n") // a container engine writes it
	c.mount(t, hosts, "/etc/hosts")
	c.seal(t)

	image := named(t, "replayd")
	c.start(t, append(image.last(t, "ENTRYPOINT").words(), engine.Command...)...)
	outside.Until(t, 10*time.Second, func() error {
		if code, said := c.exec(t, engine.Healthcheck.Test[1:]...); code != 0 { // without CMD
			return fmt.Errorf("sim's health check: want exit 0, got %d: %s", code, said)
		}
		return nil
	})
	p := c.start(t, image.command(t)...)
	p.Ready(t, http.DefaultClient, page+"/-/ready")
	outside.Until(t, 60*time.Second, func() error { // the sample's loop has 15 s without rows
		shown, err := outside.Scrape(t.Context(), page)
		if err != nil {
			return err
		}
		ok, gpu, engine := shown.Sum("replayd_requests_total", "ok"), shown.Sum("replayd_gpu_up"), shown.Sum("replayd_engine_up")
		if guard := shown.Sum("replayd_guard_open"); ok < 10 || gpu != 1 || engine != 1 || guard != 0 {
			return fmt.Errorf("want 10 requests that ended well, a GPU, an engine and no guard, got %v, %v, %v, %v", ok, gpu, engine, guard)
		}
		return nil
	})
	p.Term(t, 40*time.Second)
	if records, err := os.ReadFile(filepath.Join(c.root, "var/lib/replayd/records.jsonl")); err != nil || strings.Count(string(records), "\n") < 10 {
		t.Errorf("want the records of 10 requests, got %d bytes, %v", len(records), err)
	}
	if said := p.Said(t); strings.Contains(said, "level=ERROR") {
		t.Errorf("want no errors, got:\n%s", said)
	}
}

// The image of the target dcgm, with this machine's C library instead of its base. It reads GPUs through a libdcgm.so.4
// at the mount point of deploy/README.md.
func TestDCGM(t *testing.T) {
	c := inside(t, "dcgm", func(root string) { library(t, root) })
	if c == nil {
		return
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "trace.jsonl"), `{"timestamp": 0, "input_length": 8, "output_length": 1}`+"\n")
	write(t, filepath.Join(dir, "replayd.yaml"), `
targets: [{name: nobody, url: "http://127.0.0.1:1"}]
workloads: [{name: w, trace: {path: /traces/trace.jsonl}, repeat: {mode: once}}]
gpus: [{libdcgm: "127.0.0.1:5555", interval: 1s}]
`)
	c.mount(t, filepath.Join(dir, "replayd.yaml"), "/etc/replayd/replayd.yaml")
	c.mount(t, dir, "/traces")
	c.seal(t)
	image := named(t, "dcgm")
	p := c.start(t, image.command(t)...)
	p.Ready(t, http.DefaultClient, page+"/-/ready")
	outside.Until(t, 20*time.Second, func() error {
		shown, err := outside.Scrape(t.Context(), page)
		if err != nil {
			return err
		}
		if up, power := shown.Sum("replayd_gpu_up"), shown.Sum("replayd_gpu_power_watts"); up != 1 || power != 350.5 {
			return fmt.Errorf("want a GPU at 350.5 W, got up %v, %v W", up, power)
		}
		return nil
	})
	if code, said := c.exec(t, image.probe(t)...); code != 0 {
		t.Errorf("health check: want exit 0, got %d: %s", code, said)
	}
	p.Term(t, 20*time.Second)
}

// library puts this machine's C library and a libdcgm.so.4 that plays into a root.
func library(t *testing.T, root string) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		outside.Missing(t, err, "it needs a C compiler to build the library with")
	}
	sources, err := filepath.Glob(repository + "/internal/gpu/dcgm/testdata/libdcgm/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("want the library's sources, got %v", err)
	}
	dcgm := filepath.Join(root, "usr/lib/libdcgm.so.4")
	folder(t, filepath.Dir(dcgm))
	args := append([]string{"-shared", "-fPIC", "-pthread", "-Wl,-soname,libdcgm.so.4,-Bsymbolic", "-o", dcgm}, sources...)
	if out, err := exec.CommandContext(t.Context(), cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	write(t, filepath.Join(filepath.Dir(dcgm), "control"), "gpus 1\nvalue 0 155 350.5\n")
	for _, binary := range []string{filepath.Join(build(t, "build-dcgm", architecture), "replayd"), dcgm} {
		out, err := exec.CommandContext(t.Context(), "ldd", binary).CombinedOutput()
		if err != nil {
			t.Fatalf("ldd: %v: %s", err, out)
		}
		for _, m := range regexp.MustCompile(`(?m)(/\S+) \(0x`).FindAllStringSubmatch(string(out), -1) {
			copyFile(t, m[1], filepath.Join(root, m[1]))
		}
	}
}
