//go:build real

package image_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"replayd/test/outside"
)

// Our two services of compose.yaml, with its commands, mounts and health checks: requests end ok, the GPU is read, and
// records are kept.
func TestCompose(t *testing.T) {
	c := inside(t)
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
	outside.Until(t, func() error {
		if code, said := c.exec(t, engine.Healthcheck.Test[1:]...); code != 0 { // without CMD
			return fmt.Errorf("sim's health check: want exit 0, got %d: %s", code, said)
		}
		return nil
	})
	p := c.start(t, image.command(t)...)
	p.Ready(t, http.DefaultClient, page+"/-/ready")
	outside.Until(t, func() error { // the sample's loop has 15 s without rows
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
	p.Term(t)
	if records, err := os.ReadFile(filepath.Join(c.root, "var/lib/replayd/records.jsonl")); err != nil || strings.Count(string(records), "\n") < 10 {
		t.Errorf("want the records of 10 requests, got %d bytes, %v", len(records), err)
	}
	if said := p.Said(t); strings.Contains(said, "level=ERROR") {
		t.Errorf("want no errors, got:\n%s", said)
	}
}
