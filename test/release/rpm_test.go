//go:build real && release

package release_test

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// elsewhere are the files of the deb that the rpm has under another name, as its distributions want it.
var elsewhere = map[string]string{
	"usr/share/doc/replayd/changelog.gz":        "usr/share/doc/replayd/CHANGELOG.md",
	"usr/share/doc/replayd/copyright":           "usr/share/licenses/replayd/LICENSE",
	"usr/share/zsh/vendor-completions/_replayd": "usr/share/zsh/site-functions/_replayd",
}

// The rpm installs the files of the deb: the same files with the same bytes, modes and owners, the same
// configuration files, and scripts that start nothing.
func TestRPM(t *testing.T) {
	m := inside(t)
	if m == nil {
		return
	}
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	rpm := m.copy(t, one(t, "replayd-*-1."+arch+".rpm"))
	if said := m.must(t, "rpm", "--checksig", "--nosignature", rpm); !strings.Contains(said, "digests OK") {
		t.Errorf("rpm --checksig: want digests OK, got %s", said)
	}
	if said := m.must(t, "rpm", "-qp", "--configfiles", rpm); said != "/etc/default/replayd\n"+configuration {
		t.Errorf("want the configuration and the flags kept over an upgrade, got\n%s", said)
	}
	if said := m.must(t, "rpm", "-qp", "--requires", rpm); strings.Contains(said, ".so") {
		t.Errorf("want no library, got\n%s", said)
	}
	scripts := m.must(t, "rpm", "-qp", "--scripts", rpm)
	for _, want := range []string{"systemctl daemon-reload", "systemctl disable --now replayd"} {
		if !strings.Contains(scripts, want) {
			t.Errorf("rpm --scripts: want %s, got\n%s", want, scripts)
		}
	}
	for _, no := range []string{"systemctl enable", "systemctl start"} {
		if strings.Contains(scripts, no) {
			t.Errorf("rpm --scripts: want no %s, got\n%s", no, scripts)
		}
	}

	m.must(t, "rpm", "--root=/srv/rpm", "--initdb")
	m.must(t, "rpm", "--root=/srv/rpm", "--install", "--nodeps", "--noscripts", rpm)
	deb := m.copy(t, one(t, "replayd_*_"+runtime.GOARCH+".deb"))
	m.must(t, "dpkg-deb", "--extract", deb, "/srv/deb")
	want, got := files(t, filepath.Join(m.root, "srv/deb")), files(t, filepath.Join(m.root, "srv/rpm"))
	maps.DeleteFunc(got, func(name, _ string) bool {
		return strings.HasPrefix(name, "var/lib/rpm") || strings.HasPrefix(name, "usr/lib/sysimage")
	})
	for _, name := range slices.Sorted(maps.Keys(want)) {
		other := cmp.Or(elsewhere[name], name)
		same := got[other] == want[name] || other != name && !strings.HasSuffix(name, "_replayd") && got[other] != "" // another form of the same text
		if !same {
			t.Errorf("%s: the deb has %s, the rpm %q", name, want[name], got[other])
		}
		delete(got, other)
	}
	for name := range got {
		t.Errorf("%s: only the rpm has it", name)
	}
	if len(want) < 10 {
		t.Errorf("want ten files or more, got %v", want)
	}
}

// files lists the files under a folder, with mode, owner and checksum.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		s := info.Sys().(*syscall.Stat_t)
		all[strings.TrimPrefix(path, root+"/")] = fmt.Sprintf("%v %d:%d %s", info.Mode(), s.Uid, s.Gid, sum(t, path))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
