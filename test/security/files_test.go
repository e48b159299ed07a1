package security_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"replayd/test/outside"
)

// What the commands write has prompts, records and results. It is for the user and the group, whatever the umask, and an existing file keeps
// its mode.
func TestWhatIsWrittenIsPrivate(t *testing.T) {
	dir := t.TempDir()
	replayd := func(args ...string) []string {
		return append([]string{"-c", `umask 0; exec "$@"`, "sh", binary}, args...)
	}
	address := outside.Address(t)
	url := "http://" + address
	sim := outside.Start(t, filepath.Join(t.TempDir(), "sim.out"), "sh",
		replayd("sim", "--web.listen-address", address, "--log", filepath.Join(dir, "sim.jsonl"), "--ttft", "1ms", "--itl", "1ms")...)
	sim.Ready(t, http.DefaultClient, url+"/health")

	source := t.TempDir()
	outside.Write(t, source, "trace.jsonl", trace)
	configuration := fmt.Sprintf(`{targets: [{name: sim, url: "%s"}, {name: other, url: "%s"}], web: {listen: "%s"}, records: {path: serve.jsonl, max_bytes: 400, keep: 2},
  state: {path: state}, workloads: [{name: w, target: sim, trace: {path: %s/trace.jsonl}, repeat: {mode: loop, every: 100ms}}],
  comparisons: [{name: c, workload: w, candidate: other}]}`, url, url, outside.Address(t), source)
	config := outside.Write(t, source, "replayd.yaml", configuration)
	if err := os.WriteFile(filepath.Join(dir, "kept.jsonl"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "kept.jsonl"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"run", source + "/trace.jsonl", "--url", url, "--records", "run.jsonl", "--artifact-dir", "a/artifacts", "--save-prompts"},
		{"run", source + "/trace.jsonl", "--url", url, "--save-result", "--save-prompts", "--result-dir", "b/results"},
		{"run", source + "/trace.jsonl", "--url", url, "--artifact-dir", "sweep", "--concurrency", "1,2"},
		{"run", source + "/trace.jsonl", "--url", url, "--artifact-dir", "sweep", "--concurrency", "1,2"}, // moves the earlier ones
		{"report", "a/artifacts", "--output", "c/report.html"},
		{"report", "a/artifacts", "--json", "report.json"},
		{"report", "a/artifacts", "sweep", "--output", "d"},
		{"trace", "analyze", source + "/trace.jsonl", "--output-file", "e/f/trace.json"},
		{"trace", "convert", source + "/trace.jsonl", "--to", "mooncake", "-o", "converted.jsonl"},
		{"trace", "convert", source + "/trace.jsonl", "--to", "mooncake", "-o", "kept.jsonl"},
		{"compare", source + "/trace.jsonl", "--baseline", url, "--candidate", url, "--for", "1s", "--min-time", "1s", "--html", "g/compare.html"},
	} {
		c := exec.CommandContext(t.Context(), "sh", replayd(args...)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil && (args[0] != "compare" || c.ProcessState.ExitCode() != 4) { // 4: undecided
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
	c := exec.CommandContext(t.Context(), "sh", replayd("serve", "--config", config)...)
	c.Dir = dir
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	outside.Until(t, func() error { _, err := os.Stat(filepath.Join(dir, "serve.jsonl.2")); return err })
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()

	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		names = append(names, name)
		switch mode := info.Mode().Perm(); {
		case name == "kept.jsonl":
			if mode != 0o666 {
				t.Errorf("%s: want the mode that it had, got %o", name, mode)
			}
		case d.IsDir() && mode&^0o750 != 0, !d.IsDir() && mode&^0o640 != 0:
			t.Errorf("%s: want 0640 or less, of a folder 0750, got %o", name, mode)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"sim.jsonl", "run.jsonl", "a/artifacts/profile_export.jsonl", "c/report.html", "report.json", "d/report.html", "e/f/trace.json",
		"converted.jsonl", "g/compare.html", "serve.jsonl", "serve.jsonl.1", "state", "sweep/before",
	} {
		if !slices.Contains(names, filepath.FromSlash(want)) {
			t.Errorf("want %s, got %q", want, names)
		}
	}
}
