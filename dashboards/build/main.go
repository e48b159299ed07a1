// Command build writes the Grafana dashboards, dashboards/*.json: `go generate ./dashboards/...`. Each dashboard has a
// file. Shared code is in grafana.go (the format), variables.go (the variables) and queries.go (frequent queries). The
// JSON is committed, so that nobody needs this program to use it, and a test keeps both the same.
package main

//go:generate go run . ..

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// boards returns all dashboards by file name.
func boards() map[string]*board {
	return map[string]*board{
		"canary.json":      canary(),
		"comparison.json":  comparison(),
		"correlation.json": correlation(),
		"health.json":      health(),
		"fleet.json":       fleet(),
		"overview.json":    overview(),
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: build FOLDER")
		os.Exit(2)
	}
	for name, b := range boards() {
		text, err := b.text()
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], name), text, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
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
