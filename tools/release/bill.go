package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"
)

// bills writes the bill of materials of each binary, in CycloneDX' form, by the tool of `make sbom`.
func (r *release) bills(ctx context.Context) error {
	for _, c := range []struct {
		with string
		all  []platform
	}{{"", r.platforms}, {"-dcgm", packaged}} {
		for _, p := range c.all {
			text, err := r.bill(ctx, r.binary(c.with, p))
			if err != nil {
				return fmt.Errorf("replayd%s for %s: %w", c.with, p, err)
			}
			name := "replayd" + c.with + "-" + r.version.String() + "." + p.String() + ".cdx.json"
			if err := create(filepath.Join(r.out, name), func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *release) bill(ctx context.Context, binary string) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", "tool", "-modfile=tools/sbom/go.mod", "cyclonedx-gomod", "bin", "-json", "-std", "-licenses",
		"-noserial", "-notimestamp", "-version", r.version.stamp, "-output", "-", binary)
	c.Dir = r.root
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("cyclonedx-gomod: %w: %s", err, said.String())
	}
	return settled(out.Bytes(), r.at)
}

// settled is a bill with what differs from one run to the next replaced: the tool hashes its own binary, which each machine compiles for
// itself, and it looks for the license of the product's module in Go's proxy, which has it only after the release. The serial number is
// made from the content (a UUID of version 8, RFC 9562), and the time is the commit's.
func settled(text []byte, at time.Time) ([]byte, error) {
	var bill map[string]any
	if err := json.Unmarshal(text, &bill); err != nil {
		return nil, fmt.Errorf("cyclonedx-gomod: %w", err)
	}
	about, _ := bill["metadata"].(map[string]any)
	tools, _ := about["tools"].([]any)
	product, _ := about["component"].(map[string]any)
	if bill["bomFormat"] != "CycloneDX" || len(tools) == 0 || product == nil {
		return nil, fmt.Errorf("cyclonedx-gomod: want CycloneDX with metadata.tools and metadata.component, got %.200s", text)
	}
	for _, tool := range tools {
		if t, ok := tool.(map[string]any); ok {
			delete(t, "hashes")
		}
	}
	delete(product, "evidence")
	product["licenses"] = []any{map[string]any{"license": map[string]any{"id": "Apache-2.0"}}}
	about["timestamp"] = at.Format(time.RFC3339)
	content, err := json.Marshal(bill)
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(content)
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	bill["serialNumber"] = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
	content, err = json.MarshalIndent(bill, "", "  ")
	return append(content, '\n'), err
}
