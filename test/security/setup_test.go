// Package security_test holds the real binary to SECURITY.md: canaries stand wherever a secret can, a server repeats whatever it
// is sent in every way that it has, and none of it may come out anywhere.
package security_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

var binary string

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary)) }

// mark is in every canary, at its beginning and at its end: a part of one is found too.
const mark = "kanarie"

// canary is a secret for one place. It has what texts escape.
func canary(place string) string { return mark + "/" + place + `+"` + "<&>" + mark }

// word is one that stands where such characters cannot.
func word(place string) string { return mark + place + mark }

// clean wants no part of a canary in what was seen somewhere.
func clean(t *testing.T, where, text string) {
	t.Helper()
	low := strings.ToLower(text)
	for _, part := range []string{mark, mark[:5], "a2FuYXJpZ", "thbmFyaW", "rYW5hcml"} { // in base64 too, at each of its three places
		at := strings.Index(text, part)
		if part == strings.ToLower(part) {
			at = strings.Index(low, part)
		}
		if at >= 0 {
			t.Errorf("a secret is in %s: …%s…", where, text[max(0, at-200):min(len(text), at+80)])
			return
		}
	}
}

// cleanFiles wants none in any file below a folder, but for those that the test has written itself.
func cleanFiles(t *testing.T, dir string, own ...string) {
	t.Helper()
	skip := map[string]bool{}
	for _, o := range own {
		skip[o] = true
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || skip[path] {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			files++
			clean(t, path, string(text))
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("want files in %s, got %d, %v", dir, files, err)
	}
}

// command runs replayd to its end and gives all that it said.
func command(t *testing.T, dir string, env []string, args ...string) (said string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, binary, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), c.ProcessState.ExitCode()
}

// fetch gives an answer whole: status, header and body.
func fetch(t *testing.T, method, url string) (status int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	from := io.Reader(resp.Body)
	if strings.HasSuffix(url, "/live/events") { // it has no end
		from = io.LimitReader(from, 16<<10)
	}
	body, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	var head strings.Builder
	_ = resp.Header.Write(&head) // a builder takes all
	return resp.StatusCode, head.String() + string(body)
}
