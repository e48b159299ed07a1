package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
)

const sample = "internal/synth/sample.jsonl"

// shipped are the files beside the binary that archives and packages have: rules, dashboards, a scrape configuration and the sample trace.
func (r *release) shipped() ([]entry, error) {
	all, err := repositoryFiles(r.root, "", sample)
	if err != nil {
		return nil, err
	}
	for _, folder := range []struct{ name, files string }{{"alerts", "alerts/*.yaml"}, {"dashboards", "dashboards/*.json"}} {
		files, err := repositoryFiles(r.root, folder.name, folder.files)
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	// The file of the repository is for Compose, where each process is another host.
	prometheus, err := edited(r.root, "deploy/prometheus.yml", "../alerts/*.yaml", "alerts/*.yaml",
		"in a checkout, and in compose.yaml's containers", "beside it",
		`["alertmanager:9093"]`, `["127.0.0.1:9093"]`, `["replayd:9797"]`, `["127.0.0.1:9797"]`)
	return append(all, entry{path: "prometheus.yml", mode: 0o644, data: prometheus}), err
}

// archives writes a tar.gz for each binary, with one folder of the archive's name in it, as Prometheus names them.
func (r *release) archives(context.Context) error {
	files, err := r.shipped()
	if err != nil {
		return err
	}
	texts, err := repositoryFiles(r.root, "", "LICENSE", "NOTICE", "CHANGELOG.md", "README.md")
	if err != nil {
		return err
	}
	config, err := edited(r.root, "deploy/packages/replayd.yaml", "/usr/share/replayd/sample.jsonl", "sample.jsonl")
	if err != nil {
		return err
	}
	files = append(append(files, texts...), entry{path: "replayd.example.yaml", mode: 0o644, data: config},
		entry{path: licensesFile, mode: 0o644, from: r.licensesFile()})
	unit, err := repositoryFiles(r.root, "", "deploy/systemd/replayd.service")
	if err != nil {
		return err
	}
	linux := slices.Concat(files, unit)
	for _, p := range r.platforms {
		with := files
		if p.os == "linux" {
			with = linux
		}
		if err := r.archive("", p, with); err != nil {
			return err
		}
	}
	for _, p := range packaged {
		if err := r.archive("-dcgm", p, linux); err != nil {
			return err
		}
	}
	return r.mixin()
}

func (r *release) archive(with string, p platform, files []entry) error {
	name := "replayd" + with + "-" + r.version.String() + "." + p.String()
	all := []entry{{path: "replayd", mode: 0o755, from: r.binary(with, p)}}
	return r.tarball(name+".tar.gz", name, append(all, files...))
}

// tarball writes files under a folder into a tar.gz.
func (r *release) tarball(file, folder string, files []entry) error {
	all := make([]entry, len(files))
	for i, e := range files {
		e.path = folder + "/" + e.path
		all[i] = e
	}
	return create(filepath.Join(r.out, file), func(w io.Writer) error { return writeTarGz(w, folders(all), r.at) })
}

// mixin packs the Jsonnet files beside the rules and the dashboards that they import.
func (r *release) mixin() error {
	if _, err := os.Stat(filepath.Join(r.root, "mixin")); os.IsNotExist(err) {
		return nil
	}
	var all []entry
	for _, folder := range []struct{ name, files string }{{"alerts", "alerts/*.yaml"}, {"dashboards", "dashboards/*.json"}, {"mixin", "mixin/*"}} {
		files, err := repositoryFiles(r.root, folder.name, folder.files)
		if err != nil {
			return err
		}
		all = append(all, files...)
	}
	texts, err := repositoryFiles(r.root, "", "LICENSE", "NOTICE")
	if err != nil {
		return err
	}
	name := "replayd-" + r.version.String() + ".mixin"
	return r.tarball(name+".tar.gz", name, append(all, texts...))
}
