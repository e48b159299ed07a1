package daemon

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/config"
	"replayd/test/machine"
)

const emptyState = `{"version":1,"comparisons":[]}`

// No file that is not replayd's own is replaced, and no file of the configuration is its state. check-config says so; serve and a reload check alike.
func TestStateIsRefused(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"trace.jsonl": rows(3), "notes": "remember\n", "tfstate": `{"version": 4, "terraform_version": "1.9"}`, "short": `{"version":1,"compa`, "empty": "",
		"pretty": "{\n  \"version\": 1,\n  \"comparisons\": []\n}\n", "sorted": `{"comparisons":[],"version":1}`, "newer": `{"version":3,"comparisons":{}}`,
		"key": "secret", "state": emptyState, "ours": emptyState, "folder/a.jsonl": rows(3), "prefix": `{"ver`, "taken.lock": "mine",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		overwrite(t, name, []byte(text))
	}
	for link, to := range map[string]string{"link": "trace.jsonl", "to-state": "state", "dangling": "none-yet", "to-records": "records"} {
		if err := os.Symlink(to, link); err != nil {
			machine.Lacks(t, "symbolic links", err)
		}
	}
	if err := os.Link("trace.jsonl", "hard"); err != nil {
		machine.Lacks(t, "hard links", err)
	}
	if err := syscall.Mkfifo("fifo", 0o600); err != nil {
		machine.Lacks(t, "named pipes", err)
	}
	const own, foreign = "want a file of its own, got that of ", "want a state file of replayd, or none, got another file, which is not replaced"
	for path, want := range map[string]string{
		"trace.jsonl": own + "workloads[0].trace.path, trace.jsonl", "link": own + "workloads[0].trace.path", "hard": own + "workloads[0].trace.path",
		"folder/../trace.jsonl": own + "workloads[0].trace.path", "folder/state": own + "workloads[1].trace.path, folder", "key": own + "targets[0].http.authorization.credentials_file",
		"records": own + "records.path", "to-records": own + "records.path", "records.1": own + "records.path", "records.12.gz": own + "records.path",
		"records.state": "", "tokenizer.json": own + "targets[0].tokenizer", "web.yaml": own + "web.config_file",
		"notes": foreign, "tfstate": foreign, "prefix": foreign, "fifo": "want a file, got a pipe", dir: "want a file, got a directory", "/dev/null": "want a file, got a device",
		"state": "", "to-state": "", "dangling": "", "none": "", "short": "", "empty": "", "pretty": "", "sorted": "", "newer": "",
	} {
		c := conf([]config.Target{target("t", nobody)}, once("w", "t", "trace.jsonl"), once("v", "t", "folder"))
		c.Targets[0].HTTP.Authorization = &commoncfg.Authorization{CredentialsFile: "key"}
		c.Records.Path, c.State = "records", config.State{Path: path}
		switch path {
		case "tokenizer.json":
			c.Targets[0].Tokenizer = path
		case "web.yaml":
			c.Web.ConfigFile = path
		}
		before := contents(t, dir)
		faults := checkedFaults(t, c, "state.path")
		if got := strings.Join(faults, "; "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: want %q, got %q", path, want, got)
		}
		if after := contents(t, dir); after != before {
			t.Errorf("%s: the check changed files: %s", path, after)
		}
	}
}

// Records are appended to no other file of the configuration.
func TestRecordsHaveTheirOwnFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"trace.jsonl": rows(3), "folder/a.jsonl": rows(3)} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		overwrite(t, name, []byte(text))
	}
	if err := os.Link("trace.jsonl", "hard"); err != nil {
		machine.Lacks(t, "hard links", err)
	}
	const own = "want a file of its own, got that of "
	for path, want := range map[string]string{
		"trace.jsonl": own + "workloads[0].trace.path", "hard": own + "workloads[0].trace.path", "folder/records": own + "workloads[1].trace.path",
		"key": own + "targets[0].http.authorization.credentials_file", "records": "", "/dev/null": "", "other/records": "", "trace": "",
	} {
		c := conf([]config.Target{target("t", nobody)}, once("w", "t", "trace.jsonl"), once("v", "t", "folder"), once("u", "t", "trace.1"))
		c.Targets[0].HTTP.Authorization = &commoncfg.Authorization{CredentialsFile: "key.2.gz"}
		c.Records.Path = path
		if path == "trace" {
			want = own + "workloads[2].trace.path, trace.1"
		}
		if got := strings.Join(checkedFaults(t, c, "records.path"), "; "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: want %q, got %q", path, want, got)
		}
	}
}

// checkedFaults returns the faults of a key that check-config finds.
func checkedFaults(t *testing.T, c config.Config, key string) (all []string) {
	t.Helper()
	var bad *config.Invalid
	if err := Check(t.Context(), c, slog.New(slog.DiscardHandler), nil); err != nil && !errors.As(err, &bad) {
		t.Fatal(err)
	} else if err == nil {
		return nil
	}
	for _, f := range bad.Faults {
		if f.Key == key {
			all = append(all, f.Want)
		}
	}
	return all
}

// contents returns the names and texts of all regular files.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		all.WriteString(path + "\n" + string(text) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
