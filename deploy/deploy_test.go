// Package deploy_test holds the files that deploy replayd to each other and to the rest of the repository. What needs other
// programs to be judged is in test/image.
package deploy_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"replayd/internal/config"
)

type service struct {
	Image       string
	Build       struct{ Context string }
	PullPolicy  string   `yaml:"pull_policy"`
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	Command     []string
	Ports       []string
	Volumes     []string
	StopGrace   string `yaml:"stop_grace_period"`
	Environment map[string]string
	Healthcheck struct{ Test []string }
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
}

type compose struct {
	Services map[string]service
	Volumes  map[string]any
}

// load reads a file of YAML.
func load[T any](t *testing.T, path string) (v T) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

// Every image has a version, every service a health check and no rights, and nobody else can reach a port.
func TestComposeServices(t *testing.T) {
	version := regexp.MustCompile(`^[a-z0-9./-]+:v?[0-9]+\.[0-9]+\.[0-9]+$`)
	c := load[compose](t, "compose.yaml")
	want := []string{"alertmanager", "grafana", "prometheus", "replayd", "sim"}
	if got := slices.Sorted(maps.Keys(c.Services)); !slices.Equal(got, want) {
		t.Fatalf("want the services %v, got %v", want, got)
	}
	builds := map[string]string{} // by image
	for name, s := range c.Services {
		if s.Build.Context == "" {
			continue
		}
		if other, twice := builds[s.Image]; twice {
			t.Errorf("%s: want one service to build it, got %s and %s, which would write one tag at the same time", s.Image, other, name)
		}
		builds[s.Image] = name
	}
	for name, s := range c.Services {
		if builder := builds[s.Image]; builder != "" && builder != name {
			if _, waits := s.DependsOn[builder]; !waits || s.PullPolicy != "never" {
				t.Errorf("%s: want the image that %s builds, and to wait for it, got %v, pull_policy %q", name, builder, s.DependsOn, s.PullPolicy)
			}
		} else if builder == "" && !version.MatchString(s.Image) {
			t.Errorf("%s: want an image with a version, got %s", name, s.Image)
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
			t.Errorf("%s: want a read-only root, no capabilities and no new privileges, got %+v", name, s)
		}
		if len(s.Healthcheck.Test) == 0 && name != "replayd" { // whose image has one
			t.Errorf("%s: want a health check", name)
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: want ports of this machine alone, got %s", name, port)
			}
		}
		for other, on := range s.DependsOn {
			if _, ok := c.Services[other]; !ok || on.Condition != "service_healthy" {
				t.Errorf("%s: want it to wait until another service is healthy, got %s: %s", name, other, on.Condition)
			}
		}
	}
}

// What is mounted is there, read-only, and what is stored has a volume.
func TestComposeMounts(t *testing.T) {
	c := load[compose](t, "compose.yaml")
	used := map[string]bool{}
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			parts := strings.Split(v, ":")
			if !strings.HasPrefix(parts[0], ".") {
				used[parts[0]] = true
				continue
			}
			if _, err := os.Stat(parts[0]); err != nil {
				t.Errorf("%s mounts what is not there: %v", name, err)
			}
			if len(parts) != 3 || parts[2] != "ro" {
				t.Errorf("%s: want %s mounted read-only", name, v)
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(c.Volumes)); !slices.Equal(got, want) {
		t.Errorf("want the volumes that are declared, %v, got %v", want, got)
	}
}

// inside gives the file here that a service sees at a path; "" where it sees none.
func inside(s service, path string) string {
	for _, v := range s.Volumes {
		from, to, _ := strings.Cut(strings.TrimSuffix(v, ":ro"), ":")
		if rest, ok := strings.CutPrefix(path, to); ok && strings.HasPrefix(from, ".") && (rest == "" || rest[0] == '/') {
			return from + rest
		}
	}
	return ""
}

// replayd's file is right, what it names is where it says, and there is time enough to drain.
func TestReplayd(t *testing.T) {
	c, err := config.Load("replayd.yaml", nil, nil, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	all := load[compose](t, "compose.yaml")
	s := all.Services["replayd"]
	if inside(s, "/etc/replayd/replayd.yaml") != "./replayd.yaml" {
		t.Error("want replayd.yaml where the image's command looks for it")
	}
	for _, w := range c.Workloads {
		if path := inside(s, w.Trace.Path); path == "" {
			t.Errorf("%s: nothing is mounted at %s", w.Name, w.Trace.Path)
		} else if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		if day := 24 * time.Hour; day%w.Repeat.Every != 0 {
			t.Errorf("%s: want a loop that divides a day, got %v", w.Name, w.Repeat.Every)
		}
	}
	if !slices.ContainsFunc(s.Volumes, func(v string) bool { return strings.HasSuffix(v, ":"+filepath.Dir(c.Records.Path)) }) {
		t.Errorf("no volume is mounted at the folder of %s", c.Records.Path)
	}
	if grace, err := time.ParseDuration(s.StopGrace); err != nil || grace < c.Drain+10*time.Second {
		t.Errorf("want a grace period longer than drain, %v, got %q", c.Drain, s.StopGrace)
	}
	if want := "http://sim:" + port(t, all.Services["sim"].Command); c.Targets[0].URL != want {
		t.Errorf("want the target %s, got %s", want, c.Targets[0].URL)
	}
}

// port is the one of --web.listen-address.
func port(t *testing.T, command []string) string {
	t.Helper()
	_, p, ok := strings.Cut(command[slices.Index(command, "--web.listen-address")+1], ":")
	if !ok {
		t.Fatalf("want an address with a port, got %v", command)
	}
	return p
}
