package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

const packageSummary = "replays LLM request traces and exports what a client sees"

const packageDescription = packageSummary + `
replayd replays a trace of LLM requests against an OpenAI-compatible server
for as long as it runs, and puts client-side latencies on /metrics.
.
The service sends load, so the installation neither enables nor starts it.
Write the address of your server into the configuration, then start it:
.
edit /etc/replayd/replayd.yaml
.
systemctl enable --now replayd`

// copyright is in Debian's format 1.0. Debian has the text of the license itself.
const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: replayd

Files: *
Copyright: 2026 The replayd Authors
License: Apache-2.0
Comment: /usr/share/doc/replayd has the notices of others in NOTICE, and the
 licenses of the Go modules in the binary in ` + licensesFile + `.

License: Apache-2.0
 On Debian systems the text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
`

// packages writes a Debian and an RPM package for each platform that has them.
func (r *release) packages(ctx context.Context) error {
	tree, err := r.packageFiles(ctx)
	if err != nil {
		return err
	}
	for _, p := range packaged {
		arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[p.arch]
		for name, packager := range map[string]nfpm.Packager{
			fmt.Sprintf("replayd_%s_%s.deb", r.version, p.arch): deb.Default,
			fmt.Sprintf("replayd-%s-1.%s.rpm", r.version, arch): rpm.DefaultRPM,
		} {
			info, err := r.packageInfo(p, tree, filepath.Ext(name)[1:])
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if err := create(filepath.Join(r.out, name), func(w io.Writer) error { return packager.Package(info, w) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// A packed file is one of a package: where it is installed, and what kind of file nfpm says it is.
type packed struct {
	entry
	kind string // of nfpm; empty: a plain file
	only string // deb or rpm; empty: both
}

// packageFiles returns what the packages have beside the binary.
func (r *release) packageFiles(ctx context.Context) ([]packed, error) {
	var all []packed
	shipped, err := r.shipped()
	if err != nil {
		return nil, err
	}
	for _, e := range shipped {
		e.path = "usr/share/replayd/" + e.path
		all = append(all, packed{entry: e})
	}
	for _, f := range []struct{ from, to, kind, only string }{
		{"deploy/systemd/replayd.service", "usr/lib/systemd/system/replayd.service", "", ""},
		{"deploy/packages/replayd.yaml", "etc/replayd/replayd.yaml", files.TypeConfigNoReplace, ""},
		{"deploy/packages/default", "etc/default/replayd", files.TypeConfigNoReplace, ""},
		{"NOTICE", "usr/share/doc/replayd/NOTICE", files.TypeRPMDoc, ""},
		{"README.md", "usr/share/doc/replayd/README.md", files.TypeRPMDoc, ""},
		{"CHANGELOG.md", "usr/share/doc/replayd/CHANGELOG.md", files.TypeRPMDoc, "rpm"},
		{"LICENSE", "usr/share/licenses/replayd/LICENSE", files.TypeRPMLicense, "rpm"},
	} {
		text, err := os.ReadFile(filepath.Join(r.root, f.from))
		if err != nil {
			return nil, err
		}
		all = append(all, packed{entry{path: f.to, mode: 0o644, data: text}, f.kind, f.only})
	}
	// Debian's policy wants both of these, and the changelog compressed.
	changelog, err := compressed(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	all = append(all,
		packed{entry{path: "usr/share/doc/replayd/changelog.gz", mode: 0o644, data: changelog}, "", "deb"},
		packed{entry{path: "usr/share/doc/replayd/copyright", mode: 0o644, data: []byte(copyright)}, "", "deb"})
	all = append(all, packed{entry{path: "usr/share/doc/replayd/" + licensesFile, mode: 0o644, from: r.licensesFile()}, files.TypeRPMLicense, ""})
	completions, err := r.completions(ctx)
	if err != nil {
		return nil, err
	}
	all = append(all, completions...)
	// So that rpm removes them with the package. dpkg does it for every folder.
	const ours = "etc/replayd usr/share/replayd usr/share/replayd/alerts usr/share/replayd/dashboards usr/share/doc/replayd"
	for dir := range strings.FieldsSeq(ours) {
		all = append(all, packed{entry{path: dir, mode: 0o755}, files.TypeDir, ""})
	}
	return append(all, packed{entry{path: "usr/share/licenses/replayd", mode: 0o755}, files.TypeDir, "rpm"}), nil
}

// completions asks replayd itself, built for this machine.
func (r *release) completions(ctx context.Context) (all []packed, err error) {
	for shell, path := range map[string]string{
		"bash": "usr/share/bash-completion/completions/replayd",
		"zsh":  "usr/share/zsh/vendor-completions/_replayd",
		"fish": "usr/share/fish/vendor_completions.d/replayd.fish",
	} {
		c := exec.CommandContext(ctx, "go", "run", "./cmd/replayd", "completion", shell)
		c.Dir = r.root
		var said bytes.Buffer
		c.Stderr = &said
		script, err := c.Output()
		if err != nil || len(script) == 0 {
			return nil, fmt.Errorf("replayd completion %s: want a script, got %w: %s", shell, err, said.String())
		}
		e := entry{path: path, mode: 0o644, data: script}
		if shell == "zsh" { // Fedora's zsh reads another folder than Debian's
			all = append(all, packed{e, "", "deb"})
			e.path = "usr/share/zsh/site-functions/_replayd"
			all = append(all, packed{e, "", "rpm"})
			continue
		}
		all = append(all, packed{entry: e})
	}
	return all, nil
}

// compressed returns a file as gzip -9n writes it.
func compressed(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// packageInfo is what nfpm needs to know. It takes files from a folder, so those of the tree are written into one first.
func (r *release) packageInfo(p platform, tree []packed, format string) (*nfpm.Info, error) {
	info := &nfpm.Info{
		Name: "replayd", Platform: p.os, Arch: p.arch, Version: r.version.pack(), VersionSchema: "none", Section: "net", Priority: "optional",
		Maintainer: r.owner.maintainer(), Vendor: "The replayd Authors", Homepage: r.owner.Repository, License: "Apache-2.0",
		Description: packageDescription, MTime: r.at, DisableGlobbing: true,
	}
	if format == "rpm" {
		info.Release = "1"
		info.Description = strings.ReplaceAll(packageDescription, "\n.\n", "\n\n") // the dots are Debian's
	}
	info.RPM.Summary, info.RPM.BuildHost, info.RPM.Group = packageSummary, "localhost", "Unspecified"
	scripts := filepath.Join(r.root, "deploy/packages")
	info.Scripts.PostInstall = filepath.Join(scripts, "postinstall.sh")
	info.Scripts.PreRemove = filepath.Join(scripts, "preremove.sh")
	info.Scripts.PostRemove = filepath.Join(scripts, "postremove.sh")
	all := append([]packed{{entry: entry{path: "usr/bin/replayd", mode: 0o755, from: r.binary("", p)}}}, tree...)
	for _, f := range all {
		if f.only != "" && f.only != format {
			continue
		}
		if format == "deb" && (f.kind == files.TypeRPMDoc || f.kind == files.TypeRPMLicense) { // nfpm would leave it out
			f.kind = ""
		}
		from := f.from
		if from == "" && f.kind != files.TypeDir {
			from = filepath.Join(r.work, format, f.path)
			if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
				return nil, err
			}
			if err := os.WriteFile(from, f.data, 0o644); err != nil {
				return nil, err
			}
		}
		info.Contents = append(info.Contents, &files.Content{
			Source: from, Destination: "/" + f.path, Type: f.kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: r.at},
		})
	}
	return nfpm.WithDefaults(info), nfpm.PrepareForPackager(info, format)
}
