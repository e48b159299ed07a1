package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sassoftware/go-rpmutils"
)

// wantPacked are the files of both kinds of package; those in share are beside rules and dashboards.
var wantPacked = []string{
	"/etc/default/replayd", "/etc/replayd/replayd.yaml", "/usr/bin/replayd", "/usr/lib/systemd/system/replayd.service",
	"/usr/share/bash-completion/completions/replayd", "/usr/share/doc/replayd/NOTICE", "/usr/share/doc/replayd/README.md",
	"/usr/share/doc/replayd/" + licensesFile,
	"/usr/share/fish/vendor_completions.d/replayd.fish", "/usr/share/replayd/prometheus.yml", "/usr/share/replayd/sample.jsonl",
}

var configurations = []string{"/etc/default/replayd", "/etc/replayd/replayd.yaml"}

func packedNames(t *testing.T, r *release, more ...string) []string {
	t.Helper()
	want := append(slices.Clone(wantPacked), more...)
	for _, pattern := range []string{"alerts/*.yaml", "dashboards/*.json"} {
		found, err := filepath.Glob(filepath.Join(r.root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			want = append(want, "/usr/share/replayd/"+filepath.Base(filepath.Dir(f))+"/"+filepath.Base(f))
		}
	}
	slices.Sort(want)
	return want
}

// members reads an ar file: a line of text, then for each member a header of 60 bytes, the content, and a byte that makes it even.
func members(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	data, ok := bytes.CutPrefix(data, []byte("!<arch>\n"))
	if !ok {
		t.Fatal("want an ar file")
	}
	for len(data) > 0 {
		size, err := strconv.Atoi(strings.TrimSpace(string(data[48:58])))
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimRight(strings.TrimSpace(string(data[:16])), "/")] = data[60 : 60+size]
		data = data[min(60+size+size%2, len(data)):]
	}
	return all
}

func TestDebianPackage(t *testing.T) {
	r := newTestRelease(t)
	if err := r.packages(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range packaged {
		parts := members(t, readFile(t, r.out, "replayd_1.2.3-rc.1_"+p.arch+".deb"))
		if string(parts["debian-binary"]) != "2.0\n" {
			t.Errorf("want format 2.0, got %q", parts["debian-binary"])
		}
		control := readTar(t, bytes.NewReader(unzip(t, parts["control.tar.gz"])))
		about := find(t, control, "./control")
		for _, want := range []string{
			"Package: replayd\n", "Version: 1.2.3~rc.1\n", "Architecture: " + p.arch + "\n", "Maintainer: The replayd Authors\n",
			"neither enables nor starts it", "edit /etc/replayd/replayd.yaml", "systemctl enable --now replayd",
		} {
			if !strings.Contains(about, want) {
				t.Errorf("%s: control: want %q, got %s", p, want, about)
			}
		}
		if got := strings.Fields(find(t, control, "./conffiles")); !slices.Equal(got, configurations) {
			t.Errorf("%s: want the conffiles %v, got %v", p, configurations, got)
		}
		for _, script := range []string{"postinst", "prerm", "postrm"} {
			text := find(t, control, "./"+script)
			if !strings.HasPrefix(text, "#!/bin/sh\n") || strings.Contains(text, "systemctl enable") || strings.Contains(text, "systemctl start") {
				t.Errorf("%s: %s: want a script that starts nothing, got %s", p, script, text)
			}
		}
		data := readTar(t, bytes.NewReader(unzip(t, parts["data.tar.gz"])))
		var names []string
		for _, s := range data {
			h := s.header
			if h.Uid != 0 || h.Gid != 0 || h.Uname != "root" || !h.ModTime.Equal(testTime) {
				t.Errorf("%s: %s: want root at %v, got %d:%d %q, %v", p, h.Name, testTime, h.Uid, h.Gid, h.Uname, h.ModTime)
			}
			if h.Typeflag == tar.TypeReg {
				names = append(names, strings.TrimPrefix(h.Name, "."))
				if want := map[bool]int64{true: 0o755, false: 0o644}[h.Name == "./usr/bin/replayd"]; h.Mode&0o7777 != want {
					t.Errorf("%s: %s: want mode %o, got %o", p, h.Name, want, h.Mode)
				}
			}
		}
		slices.Sort(names)
		want := packedNames(t, r, "/usr/share/doc/replayd/changelog.gz", "/usr/share/doc/replayd/copyright", "/usr/share/zsh/vendor-completions/_replayd")
		if !slices.Equal(names, want) {
			t.Errorf("%s: want\n%v\ngot\n%v", p, want, names)
		}
		if got := find(t, data, "./usr/bin/replayd"); got != "replayd for "+p.String()+"\n" {
			t.Errorf("%s: want its binary, got %q", p, got)
		}
		got := find(t, data, "./usr/share/bash-completion/completions/replayd")
		if !strings.Contains(got, "complete -o default -F __start_replayd replayd") {
			t.Errorf("%s: want a completion for bash, got %.200s", p, got)
		}
		if got := unzip(t, []byte(find(t, data, "./usr/share/doc/replayd/changelog.gz"))); !bytes.Equal(got, readFile(t, r.root, "CHANGELOG.md")) {
			t.Errorf("%s: want the changelog", p)
		}
	}
}

func TestRPMPackage(t *testing.T) {
	r := newTestRelease(t)
	if err := r.packages(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range packaged {
		arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[p.arch]
		file, err := rpmutils.ReadRpm(bytes.NewReader(readFile(t, r.out, "replayd-1.2.3-rc.1-1."+arch+".rpm")))
		if err != nil {
			t.Fatal(err)
		}
		about, err := file.Header.GetNEVRA()
		if err != nil || about.Name != "replayd" || about.Version != "1.2.3~rc.1" || about.Release != "1" || about.Arch != arch {
			t.Errorf("want replayd-1.2.3~rc.1-1.%s, got %+v, %v", arch, about, err)
		}
		for tag, want := range map[int]string{
			rpmutils.LICENSE: "Apache-2.0", rpmutils.BUILDHOST: "localhost",
			rpmutils.DESCRIPTION: "neither enables nor starts it", rpmutils.POSTIN: "daemon-reload", rpmutils.PREUN: "disable --now", rpmutils.POSTUN: "daemon-reload",
		} {
			if got, err := file.Header.GetString(tag); err != nil || !strings.Contains(got, want) {
				t.Errorf("%s: tag %d: want %q, got %q, %v", p, tag, want, got, err)
			}
		}
		infos, err := file.Header.GetFiles()
		if err != nil {
			t.Fatal(err)
		}
		var names, kept []string
		for _, f := range infos {
			if f.UserName() != "root" || f.GroupName() != "root" || f.Mtime() != int(testTime.Unix()) {
				t.Errorf("%s: %s: want root at %v, got %s:%s, %d", p, f.Name(), testTime, f.UserName(), f.GroupName(), f.Mtime())
			}
			if f.Mode()&0o170000 == 0o40000 {
				continue
			}
			names = append(names, f.Name())
			if f.Flags()&(rpmutils.RPMFILE_CONFIG|rpmutils.RPMFILE_NOREPLACE) == rpmutils.RPMFILE_CONFIG|rpmutils.RPMFILE_NOREPLACE {
				kept = append(kept, f.Name())
			}
		}
		slices.Sort(names)
		slices.Sort(kept)
		want := packedNames(t, r, "/usr/share/doc/replayd/CHANGELOG.md", "/usr/share/licenses/replayd/LICENSE", "/usr/share/zsh/site-functions/_replayd")
		if !slices.Equal(names, want) {
			t.Errorf("%s: want\n%v\ngot\n%v", p, want, names)
		}
		if !slices.Equal(kept, configurations) {
			t.Errorf("%s: want %v kept at an upgrade, got %v", p, configurations, kept)
		}
		payload, err := file.PayloadReaderExtended()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for {
			f, err := payload.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.Name() != "/usr/bin/replayd" {
				continue
			}
			text, err := io.ReadAll(payload)
			if found = true; err != nil || string(text) != "replayd for "+p.String()+"\n" {
				t.Errorf("%s: want its binary, got %q, %v", p, text, err)
			}
		}
		if !found {
			t.Errorf("%s: want a binary in the payload", p)
		}
	}
}
