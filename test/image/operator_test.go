//go:build real && release

package image_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"replayd/test/outside"
)

// A manifest has what the test reads of a ConfigMap and of a Deployment.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Name, Image   string
					Command, Args []string
					Env           []struct{ Name, Value string }
					VolumeMounts  []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
						SubPath   string `yaml:"subPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name      string
					ConfigMap *struct{ Name string }   `yaml:"configMap"`
					EmptyDir  *struct{ Medium string } `yaml:"emptyDir"`
				}
			}
		}
	}
}

func manifests(t *testing.T, path string) (all []manifest) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := yaml.NewDecoder(f); ; {
		var m manifest
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, m)
	}
}

var urls = regexp.MustCompile(`(?m)^(\s*(?:- )?url:\s*)\S+`)

// A cluster's operator, from the rendered manifests and the image alone: with one changed line, the address of the
// server, the pod's container has the first figure. It runs read-only, as its own user, without capabilities.
func TestReleasedManifestsRun(t *testing.T) {
	c := within(t, func(root string) {
		l := open(t)
		l.unpack(t, l.manifests(t)["linux/"+architecture], root)
	})
	if c == nil {
		return
	}
	began := time.Now()
	dist, version := release(t)
	all := manifests(t, filepath.Join(dist, "replayd-"+version+".kubernetes.yaml"))
	data := map[string]map[string]string{} // of ConfigMaps
	var deployment *manifest
	for i, m := range all {
		switch m.Kind {
		case "ConfigMap":
			data[m.Metadata.Name] = m.Data
		case "Deployment":
			deployment = &all[i]
		}
	}
	if deployment == nil || len(deployment.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("want one Deployment with one container, got %+v", deployment)
	}
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	if want := strings.ReplaceAll(version, "+", "-"); !strings.HasSuffix(container.Image, ":"+want) {
		t.Errorf("want an image with the tag %s, got %s", want, container.Image)
	}
	const server = "http://127.0.0.1:8000"
	changed := 0
	for _, mount := range container.VolumeMounts {
		for _, v := range pod.Volumes {
			switch {
			case v.Name != mount.Name:
			case v.ConfigMap != nil:
				folder := t.TempDir()
				if err := os.Chmod(folder, 0o755); err != nil {
					t.Fatal(err)
				}
				for name, text := range data[v.ConfigMap.Name] {
					changed += len(urls.FindAllString(text, -1))
					write(t, filepath.Join(folder, name), urls.ReplaceAllString(text, "${1}"+server))
				}
				c.mount(t, filepath.Join(folder, mount.SubPath), mount.MountPath)
			case v.EmptyDir != nil:
				c.memory(t, mount.MountPath)
			default:
				t.Fatalf("want volumes that need nothing else of the cluster, got %s", v.Name)
			}
		}
	}
	if changed != 1 {
		t.Fatalf("want one line with the address of the server in the manifests, got %d", changed)
	}
	c.seal(t)
	engine := outside.Start(t, filepath.Join(c.dir, "sim.out"), filepath.Join(c.root, "usr/bin/replayd"), "sim")
	engine.Ready(t, http.DefaultClient, server+"/health")
	command := container.Command
	if len(command) == 0 {
		command = named(t, "replayd").last(t, "ENTRYPOINT").words()
	}
	p := c.start(t, append(command, container.Args...)...)
	p.Ready(t, http.DefaultClient, page+"/-/ready")
	holdRights(t, p)
	// At a tenth of the sample's rate the last 154 s of each half hour have no rows.
	outside.Until(t, 4*time.Minute, func() error {
		shown, err := outside.Scrape(t.Context(), page)
		if err != nil {
			return err
		}
		if faults := shown.Balance(); len(faults) > 0 {
			t.Fatalf("want all accounted for, got %v", faults)
		}
		if ok := shown.Sum("replayd_requests_total", "ok"); ok == 0 {
			return fmt.Errorf("want a request that ended well, got %v", ok)
		}
		return nil
	})
	t.Logf("the first figure of the operator's server after %.1f s", time.Since(began).Seconds())
	p.Term(t, 40*time.Second)
}
