//go:build real

package image_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// version is a build argument: `replayd version` then takes it from the Dockerfile.
const version = "1.2.3-image"

// certificates is the only file that the image takes from the image that builds it. Debian's package ca-certificates
// has it at the same path.
const certificates = "/etc/ssl/certs/ca-certificates.crt"

// build runs the steps of a stage and returns the folder that stands for /out. This machine stands for the base image
// of the stage.
func build(t *testing.T, name string) (out string) {
	t.Helper()
	out, source := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "src")
	if err := os.MkdirAll(source, 0o755); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH, "REVISION=unknown", "BRANCH=unknown",
		"DATE=unknown", "VERSION="+version)
	var carry func(name string)
	carry = func(name string) {
		s := named(t, name)
		if slices.ContainsFunc(stages(t), func(b stage) bool { return b.name == s.base }) {
			carry(s.base)
		}
		for _, step := range s.steps {
			switch step.op {
			case "COPY":
				copyContext(t, step.words(), source)
			case "RUN":
				c := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(step.text, "/out/", out+"/"))
				c.Dir, c.Env = source, env
				if said, err := c.CombinedOutput(); err != nil {
					t.Fatalf("%s: RUN %s: %v\n%s", name, step.text, err, said)
				}
			}
		}
	}
	carry(name)
	return out
}

// copyContext copies the build context of this repository: the files that .dockerignore lets through.
func copyContext(t *testing.T, words []string, to string) {
	t.Helper()
	from, to := words[:len(words)-1], filepath.Join(to, words[len(words)-1])
	ignored := ignore(t)
	for _, name := range from {
		root := filepath.Join(repository, name)
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			inside, err := filepath.Rel(repository, p)
			if err != nil {
				return err
			}
			if ignored(filepath.ToSlash(inside)) {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			target := filepath.Join(to, strings.TrimPrefix(p, root))
			if len(from) > 1 || strings.HasSuffix(words[len(words)-1], "/") {
				target = filepath.Join(to, filepath.Base(p))
			}
			if d.IsDir() {
				return os.MkdirAll(target, 0o755)
			}
			copyFile(t, p, target)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// ignore parses .dockerignore: `*` excludes everything, `!path` includes a path and what is below it, `**/name`
// excludes a base name anywhere. The function that it returns reports whether a path is excluded.
func ignore(t *testing.T) func(path string) bool {
	t.Helper()
	text, err := os.ReadFile(repository + "/.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	var through, never []string
	all := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line == "*":
			all = true
		case strings.HasPrefix(line, "!"):
			through = append(through, line[1:])
		case strings.HasPrefix(line, "**/"):
			never = append(never, line[3:])
		default:
			t.Fatalf(".dockerignore: want *, !path or **/name, got %q", line)
		}
	}
	if !all {
		t.Fatal(".dockerignore: want everything left out but what is named")
	}
	return func(p string) bool {
		return !slices.ContainsFunc(through, func(kept string) bool { return p == kept || strings.HasPrefix(p, kept+"/") }) ||
			slices.ContainsFunc(never, func(pattern string) bool { ok, _ := path.Match(pattern, path.Base(p)); return ok })
	}
}

// assemble puts the files of the image into a folder: the COPYs of the Dockerfile's last stage, with their owners.
func assemble(t *testing.T, root string) {
	t.Helper()
	outs := map[string]string{} // by stage
	for _, step := range named(t, "replayd").steps {
		if step.op != "COPY" {
			continue
		}
		words := step.words()
		to := filepath.Join(root, words[len(words)-1])
		if strings.HasSuffix(words[len(words)-1], "/") {
			to += "/"
		}
		switch from := step.flags["from"]; {
		case step.here != "":
			folder(t, filepath.Dir(to))
			if err := os.WriteFile(to, []byte(step.here), 0o644); err != nil {
				t.Fatal(err)
			}
		case from == "":
			for _, file := range words[:len(words)-1] {
				if ignore(t)(file) {
					t.Fatalf("COPY %s: .dockerignore leaves it out", file)
				}
				copyFile(t, filepath.Join(repository, file), filepath.Join(to, file))
			}
		case words[0] == certificates:
			if _, err := os.Stat(certificates); err != nil {
				t.Fatalf("want Debian's package ca-certificates: %v", err)
			}
			copyFile(t, certificates, to)
		default:
			if outs[from] == "" {
				outs[from] = build(t, from)
			}
			copyOut(t, outs[from]+strings.TrimPrefix(words[0], "/out"), to, step.flags["chown"])
		}
	}
}

// copyOut copies a file with its mode for an owner, or the content of a folder whose name ends in a slash.
func copyOut(t *testing.T, from, to, owner string) {
	t.Helper()
	if !strings.HasSuffix(from, "/") {
		copyFile(t, from, to)
		return
	}
	folder(t, to)
	if out, err := exec.CommandContext(t.Context(), "cp", "-R", "--preserve=mode", from+".", to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
	if owner == "" {
		return
	}
	uid, gid := ids(t, owner)
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Chown(filepath.Join(to, e.Name()), uid, gid); err != nil {
			t.Fatal(err)
		}
	}
}

// ids returns the numbers of uid:gid.
func ids(t *testing.T, owner string) (uid, gid int) {
	t.Helper()
	u, g, _ := strings.Cut(owner, ":")
	uid, err1 := strconv.Atoi(u)
	gid, err2 := strconv.Atoi(g)
	if err1 != nil || err2 != nil || uid == 0 || gid == 0 {
		t.Fatalf("want the numbers of a user and a group that are not root, got %q", owner)
	}
	return uid, gid
}

func folder(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// copyFile copies a file with its mode.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	folder(t, filepath.Dir(to))
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, info.Mode().Perm()); err != nil {
		t.Fatal(err)
	}
}
