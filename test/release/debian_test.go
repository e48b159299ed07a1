//go:build real && release

package release_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

const (
	page          = "http://127.0.0.1:9797"
	configuration = "/etc/replayd/replayd.yaml"
	unit          = "/usr/lib/systemd/system/replayd.service"
)

// A host with systemd, from the deb alone: an installation sends nothing, one changed line and one command give the
// first figure of the operator's own server, and the configuration outlives an upgrade and a removal, but no purge.
func TestDebianHost(t *testing.T) {
	m := inside(t)
	if m == nil {
		return
	}
	began := time.Now()
	deb := m.copy(t, one(t, "replayd_*_"+runtime.GOARCH+".deb"))
	m.must(t, "apt-get", "-qq", "install", deb)
	t.Logf("installed after %.1f s", time.Since(began).Seconds())
	if _, said := m.exec(t, "systemctl", "is-active", "replayd"); said != "inactive" {
		t.Errorf("want no load before the operator asks for it, the service is %s", said)
	}
	if _, said := m.exec(t, "systemctl", "is-enabled", "replayd"); said != "disabled" {
		t.Errorf("want no load after the next boot either, the service is %s", said)
	}
	if said := m.must(t, "systemd-analyze", "verify", unit); said != "" {
		t.Errorf("systemd-analyze verify: want nothing, got\n%s", said)
	}
	if said := m.must(t, "replayd", "version"); !strings.Contains(said, version) {
		t.Errorf("want version %s, got %s", version, said)
	}
	m.must(t, "replayd", "check-config", configuration)

	// The operator's server is not where the shipped configuration has it.
	const server = "127.0.0.1:8123"
	engine := outside.Start(t, filepath.Join(t.TempDir(), "sim.out"), filepath.Join(m.root, "usr/bin/replayd"), "sim", "--web.listen-address", server)
	engine.Ready(t, http.DefaultClient, "http://"+server+"/health")
	point(t, filepath.Join(m.root, configuration), server)
	if code, said := m.exec(t, "systemctl", "enable", "--now", "replayd"); code != 0 {
		t.Fatalf("systemctl enable --now: want exit 0, got %d: %s\n%s", code, said, m.must(t, "journalctl", "--quiet", "--no-pager", "--lines=20"))
	}
	first(t, m)
	t.Logf("the first figure of the operator's server after %.1f s", time.Since(began).Seconds())
	confined(t, m)

	// A faulty file changes nothing, and the journal names the line.
	sound := read(t, filepath.Join(m.root, configuration))
	outside.Put(t, filepath.Join(m.root, configuration), strings.Replace(sound, "targets:", "target:", 1))
	m.exec(t, "systemctl", "reload", "replayd")
	outside.Until(t, time.Minute, func() error {
		if said := m.must(t, "journalctl", "--quiet", "--no-pager", "--unit=replayd"); !strings.Contains(said, configuration+":") {
			return fmt.Errorf("want the line of the fault in the journal, got\n%s", said)
		}
		return nil
	})
	if _, said := m.exec(t, "systemctl", "is-active", "replayd"); said != "active" {
		t.Errorf("want it to run on, the service is %s", said)
	}
	outside.Put(t, filepath.Join(m.root, configuration), sound)

	// An upgrade keeps the operator's file and asks nothing.
	m.must(t, "apt-get", "-qq", "install", "--reinstall", deb)
	if got := read(t, filepath.Join(m.root, configuration)); got != sound {
		t.Errorf("want the operator's configuration after an upgrade, got\n%s", got)
	}
	if _, said := m.exec(t, "systemctl", "is-enabled", "replayd"); said != "enabled" {
		t.Errorf("want it enabled after an upgrade, the service is %s", said)
	}
	first(t, m)

	m.must(t, "apt-get", "-qq", "remove", "replayd")
	if code, said := m.exec(t, "systemctl", "is-active", "replayd"); code == 0 {
		t.Errorf("want no service after a removal, it is %s", said)
	}
	if got := read(t, filepath.Join(m.root, configuration)); got != sound {
		t.Errorf("want the operator's configuration after a removal, got\n%s", got)
	}
	m.must(t, "apt-get", "-qq", "purge", "replayd")
	for _, path := range []string{configuration, "/etc/default/replayd", "/usr/bin/replayd", "/usr/share/replayd"} {
		if _, err := os.Lstat(filepath.Join(m.root, path)); !os.IsNotExist(err) {
			t.Errorf("%s: want it gone after a purge, got %v", path, err)
		}
	}
}

var urls = regexp.MustCompile(`(?m)^(\s*url:\s*)\S+`)

// point changes the one line of a configuration that an operator has to change.
func point(t *testing.T, path, server string) {
	t.Helper()
	text := read(t, path)
	if n := len(urls.FindAllString(text, -1)); n != 1 {
		t.Fatalf("%s: want one line with the address of the server, got %d", path, n)
	}
	outside.Put(t, path, urls.ReplaceAllString(text, "${1}http://"+server))
}

// first waits until a request to the operator's server has ended well, and checks that all requests are accounted for.
func first(t *testing.T, m *machine) {
	t.Helper()
	firstAt(t, m, page)
}

// firstAt does so at another address.
func firstAt(t *testing.T, m *machine, page string) {
	t.Helper()
	outside.Until(t, 60*time.Second, func() error {
		shown, err := outside.Scrape(t.Context(), page)
		if err != nil {
			if m != nil {
				_, said := m.exec(t, "systemctl", "--no-pager", "--lines=20", "status", "replayd")
				err = fmt.Errorf("%w\n%s", err, said)
			}
			return err
		}
		if faults := shown.Balance(); len(faults) > 0 {
			t.Fatalf("want all accounted for, got %v", faults)
		}
		var seen uint64
		for _, m := range shown["replayd_ttft_seconds"].GetMetric() {
			seen += m.GetHistogram().GetSampleCount()
		}
		if ok := shown.Sum("replayd_requests_total", "ok"); ok == 0 || seen == 0 {
			return fmt.Errorf("want a request that ended well and its TTFT, got %v and %v", ok, seen)
		}
		return nil
	})
}

// confined checks that the service runs as the unit says: as a user of its own, without capabilities and without new ones.
func confined(t *testing.T, m *machine) {
	t.Helper()
	pid := m.must(t, "systemctl", "show", "--property=MainPID", "--value", "replayd")
	status := m.must(t, "cat", "/proc/"+pid+"/status")
	for key, want := range map[string]string{"CapPrm": "0000000000000000", "CapEff": "0000000000000000", "CapBnd": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2"} {
		if got := field(status, key); got != want {
			t.Errorf("/proc/PID/status: %s: want %s, got %q", key, want, got)
		}
	}
	if uid, _, _ := strings.Cut(field(status, "Uid"), "\t"); uid == "" || uid == "0" {
		t.Errorf("want a user without rights, got %q", uid)
	}
}

func field(status, key string) string {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
