package rollouts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// StartPrometheus starts a Prometheus of Debian's package that scrapes daemons every second, and returns its address. It ends
// with the test. Folders beside this one may call it.
func StartPrometheus(t *testing.T, daemons ...*Daemon) (address string) {
	t.Helper()
	folder, err := filepath.Abs("../../.cache/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), "../prometheus/install", folder, "prometheus").CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 && os.Getenv("CI") != "true" {
		t.Skipf("%v: %s", err, said)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	dir := t.TempDir()
	targets := []string{}
	for _, d := range daemons {
		targets = append(targets, strings.TrimPrefix(d.URL, "http://"))
	}
	list, err := json.Marshal(targets)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\n"+
		"scrape_configs: [{job_name: replayd, static_configs: [{targets: %s}]}]\n", list)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := FreeAddress(t)
	c := exec.Command(filepath.Join(folder, "prometheus"), "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+listen, "--log.level=warn")
	var log bytes.Buffer
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
		if t.Failed() {
			t.Logf("Prometheus: %s", &log)
		}
	})
	address = "http://" + listen
	Until(t, 30*time.Second, func() error {
		_, err := get(address + "/-/ready")
		return err
	})
	return address
}

// Scraped waits until a query has so many results.
func Scraped(t *testing.T, prometheus, query string, want int) {
	t.Helper()
	Until(t, 30*time.Second, func() error {
		text, err := get(prometheus + "/api/v1/query?query=" + url.QueryEscape(query))
		if err != nil {
			return err
		}
		var answer struct{ Data struct{ Result []any } }
		if err := json.Unmarshal(text, &answer); err != nil {
			return err
		}
		if got := len(answer.Data.Result); got != want {
			return fmt.Errorf("%s: want %d results, got %d", query, want, got)
		}
		return nil
	})
}

func get(url string) ([]byte, error) {
	r, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, r.Status, text)
	}
	return text, err
}

// FreeAddress returns an address of this host on which nothing listens.
func FreeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Until calls come again and again, until it returns no error, for at most so long.
func Until(t *testing.T, within time.Duration, come func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(within)
	for err := come(); err != nil; err = come() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %v", within, err)
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}
