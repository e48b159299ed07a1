//go:build daemon

package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A mount is a folder as Kubernetes mounts a ConfigMap: the file is a link through ..data, which is a link to the
// folder with the content. Only the link ..data is swapped.
type mount struct {
	dir   string
	swaps int
}

func newMount(t *testing.T, dir, text string) (m *mount, file string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	m = &mount{dir: dir}
	m.swap(t, text)
	file = filepath.Join(dir, "replayd.yaml")
	if err := os.Symlink("..data/replayd.yaml", file); err != nil {
		t.Fatal(err)
	}
	return m, file
}

// swap replaces the content in kubelet's order.
func (m *mount) swap(t *testing.T, text string) {
	t.Helper()
	data := filepath.Join(m.dir, "..data")
	before, _ := os.Readlink(data)
	m.swaps++
	folder := fmt.Sprintf("..2026_%06d", m.swaps)
	for _, err := range []error{
		os.Mkdir(filepath.Join(m.dir, folder), 0o755),
		os.WriteFile(filepath.Join(m.dir, folder, "replayd.yaml"), []byte(text), 0o644),
		os.Symlink(folder, data+"_tmp"),
		os.Rename(data+"_tmp", data),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if before != "" {
		if err := os.RemoveAll(filepath.Join(m.dir, before)); err != nil {
			t.Fatal(err)
		}
	}
}
