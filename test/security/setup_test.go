// Package security_test tests the real binary against SECURITY.md. Canaries are in every place for a secret, a server
// repeats everything that it is sent in every possible way, and no canary may leave replayd.
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
	"unicode/utf8"

	"replayd/test/outside"
)

var binary string

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary)) }

// mark is at the beginning and at the end of every canary, so that a part of one is found too.
const mark = "kanarie"

// canary returns a secret for one place. It has characters that texts escape.
func canary(place string) string { return mark + "/" + place + `+"` + "<&>" + mark }

// word returns a canary for places where such characters are not possible.
func word(place string) string { return mark + place + mark }

// clean checks that a text has no part of a canary.
func clean(t *testing.T, where, text string) {
	t.Helper()
	low := strings.ToLower(text)
	for _, part := range []string{mark, mark[:5], "a2FuYXJpZ", "thbmFyaW", "rYW5hcml"} { // base64 has three offsets
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

// cleanFiles checks every file below a folder, except for those that the test has written itself.
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

// command runs replayd to its end and returns all its output.
func command(t *testing.T, dir string, env []string, args ...string) (said string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), outside.Patience)
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

// fetch returns a whole answer: status, header and body.
func fetch(t *testing.T, method, url string) (status int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), outside.Patience)
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
	for n := 0; n < utf8.UTFMax && !utf8.Valid(body) && from != resp.Body; n++ { // the limit may cut a character
		body = body[:len(body)-1]
	}
	var head strings.Builder
	_ = resp.Header.Write(&head) // a builder accepts everything
	return resp.StatusCode, head.String() + string(body)
}
