// Command build writes the Grafana dashboards, dashboards/*.json, and in native what differs for servers with native
// histograms, of dashboards and rules: `go generate ./dashboards/...`. Each dashboard has a file. Shared code is in grafana.go
// (the format), variables.go (the variables), queries.go (frequent queries) and native.go (the native forms). All is committed,
// so that nobody needs this program to use it, and a test keeps both the same.
package main

//go:generate go run . ../..

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// boards returns all dashboards by file name, with those in native of the ones that read histograms.
func boards() map[string]*board {
	all := map[string]*board{}
	for name, of := range map[string]func() *board{
		"canary.json": canary, "comparison.json": comparison, "correlation.json": correlation, "health.json": health, "fleet.json": fleet, "overview.json": overview,
	} {
		all[name] = of()
		all[name].rewrite(all[name].equals)
		all[name].tellBuckets()
		b := of()
		b.rewrite(b.equals)
		if b.rewrite(native) {
			all["native/"+name] = b
		}
	}
	return all
}

// files returns the text of each file by its path from the root, with the native form of rules.
func files(root string) (map[string][]byte, error) {
	all := map[string][]byte{}
	for name, b := range boards() {
		text, err := b.text()
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(name, "native/") {
			name = "dashboards/" + name
		}
		all[name] = text
	}
	rules, err := os.ReadFile(filepath.Join(root, "alerts", "latency.yaml"))
	all["native/latency.yaml"] = []byte(nativeRules(string(rules)))
	return all, err
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: build ROOT")
		os.Exit(2)
	}
	all, err := files(os.Args[1])
	for name, text := range all {
		err = errors.Join(err, os.WriteFile(filepath.Join(os.Args[1], name), text, 0o644))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// text returns the file, with a key per line for readable diffs.
func (b *board) text() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(b)
	return out.Bytes(), err
}
