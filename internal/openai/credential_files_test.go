package openai

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/common/config"

	"replayd/internal/measure"
	"replayd/test/wiretest"
)

// composed returns a small message as it is sent.
func composed(t *testing.T, c *Client) string {
	t.Helper()
	l := c.Lane()
	defer l.Close()
	first, rest, err := l.compose(message(t, c))
	if err != nil {
		t.Fatal(err)
	}
	m := string(first) + string(rest)
	checkMessage(t, []byte(m))
	return m
}

// keyFiles is a directory of credential files that a test changes.
type keyFiles struct{ dir string }

func (k keyFiles) put(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(k.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (k keyFiles) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(k.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// Credentials from files are inserted when a message is sent, not when it is built. A changed file takes effect
// within a second. Old and new values are masked in error texts. While a file is missing, no message is sent.
func TestCredentialFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := keyFiles{t.TempDir()}
		bearer := newClient(t, Target{Options: Options{HTTP: config.HTTPClientConfig{BearerTokenFile: files.put(t, "token",
			"first\n")}}})
		basic := newClient(t, Target{
			Options: Options{HTTP: config.HTTPClientConfig{
				BasicAuth: &config.BasicAuth{UsernameFile: files.put(t, "user", "u"), PasswordFile: files.put(t, "password", "p\n")},
				HTTPHeaders: &config.Headers{Headers: map[string]config.Header{
					"x-key": {Files: []string{files.put(t, "key", "k1\n")}, Values: []string{"v"}}, "X-Plain": {Values: []string{"p"}},
				}},
			}},
		})
		expect := func(c *Client, lines ...string) {
			t.Helper()
			m := composed(t, c)
			for _, line := range lines {
				if strings.Count(m, "\r\n"+line+"\r\n") != 1 {
					t.Errorf("want %q once in %q", line, m)
				}
			}
		}
		expect(bearer, "Authorization: Bearer first")
		expect(basic, "Authorization: Basic dTpw", "X-Key: k1", "X-Key: v", "X-Plain: p") // u:p
		if m := string(message(t, basic)); strings.Contains(m, "k1") || strings.Contains(m, "dTpw") || strings.Contains(m, "X-Key") {
			t.Errorf("want no credentials before the write, got %q", m)
		}
		files.put(t, "token", "second")
		files.put(t, "key", "k2")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for _, c := range []*Client{bearer, basic} {
			go c.WatchCredentials(ctx)
		}
		pass(credentialsAge - 1)
		expect(bearer, "Authorization: Bearer first")
		pass(1)
		synctest.Wait()
		expect(bearer, "Authorization: Bearer second")
		expect(basic, "X-Key: k2", "X-Key: v")
		if got := bearer.Redact("bad keys first, second"); got != "bad keys <secret>, <secret>" {
			t.Errorf("want both keys hidden, got %q", got)
		}
		for _, c := range [][2]string{{"key", "X-Key"}, {"password", "password_file"}, {"user", "username_file"}} {
			name, field := c[0], c[1] // removed in reverse read order, so the error names the last one
			files.remove(t, name)
			pass(credentialsAge)
			synctest.Wait()
			if err := basic.Ready(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(field)) {
				t.Errorf("%s removed: want an error that names %s, got %v", name, field, err)
			}
		}
		files.remove(t, "token")
		pass(credentialsAge)
		synctest.Wait()
		for _, ask := range []func() error{
			bearer.Ready,
			func() error { _, err := bearer.Models(t.Context()); return err },
			func() error { _, err := bearer.Overhead(t.Context()); return err },
		} {
			if err := ask(); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("want a missing file, got %v", err)
			}
		}
		files.put(t, "token", "third")
		pass(credentialsAge)
		synctest.Wait()
		expect(bearer, "Authorization: Bearer third")
	})
}

// A header of a request replaces a header whose value comes from a file.
func TestRequestFieldsOverCredentialFiles(t *testing.T) {
	files := keyFiles{t.TempDir()}
	c := newClient(t, Target{
		Options: Options{HTTP: config.HTTPClientConfig{HTTPHeaders: &config.Headers{Headers: map[string]config.Header{
			"X-Tenant": {Files: []string{files.put(t, "tenant", "file")}}, "X-Tenant-Key": {Files: []string{files.put(t, "key", "k")}},
		}}}},
	})
	m, err := c.AppendRequest(nil, Body{Prompt: []byte("a"), Request: RequestFields{Headers: map[string]string{"x-tenant": "mark"}}})
	if err != nil {
		t.Fatal(err)
	}
	l := c.Lane()
	defer l.Close()
	first, _, err := l.compose(m)
	if got := string(first); err != nil || !strings.Contains(got, "X-Tenant: mark\r\n") || strings.Contains(got, "X-Tenant: file") || !strings.Contains(got, "X-Tenant-Key: k\r\n") {
		t.Errorf("got %q, %v", got, err)
	}
}

// A message that was built with one key is sent with the next key: for each size, with and without Begin, and
// again. It is not sent when the key file is gone.
func TestRotatedKeyIsSent(t *testing.T) {
	for _, size := range []int{10, 20_000, 300_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			seen := make(chan string, 1)
			answer := func(conn net.Conn) {
				for {
					head, body, err := request(conn)
					if err != nil {
						return
					}
					seen <- fmt.Sprint(head.Header.Get("Authorization"), " ", len(body) > size)
					send(conn, streamHead+chunked(delta("a")+finish("stop")+done)+bodyEnd)
				}
			}
			files := keyFiles{t.TempDir()}
			c := newClient(t, Target{
				Options: Options{
					URL: wiretest.Listen(t, "tcp4", answer), Timeouts: limits,
					HTTP: config.HTTPClientConfig{BearerTokenFile: files.put(t, "token", "key0")},
				},
			})
			m, err := c.AppendRequest(nil, Body{Prompt: []byte(strings.Repeat("a", size)), Stream: true})
			if err != nil {
				t.Fatal(err)
			}
			l := c.Lane()
			defer l.Close()
			var req measure.Request
			for i := range 4 {
				files.put(t, "token", fmt.Sprint("key", i))
				if err := c.readCredentials(); err != nil {
					t.Fatal(err)
				}
				if i%2 == 1 {
					l.Begin(m, &req)
				}
				l.Do(t.Context(), m, &req, Hooks{})
				if got, want := <-seen, fmt.Sprintf("Bearer key%d true", i); req.Outcome != measure.OK || got != want {
					t.Errorf("want %s, got %s, %s: %s", want, got, req.Outcome, req.Error)
				}
			}
			files.remove(t, "token")
			if err := c.readCredentials(); err == nil {
				t.Error("want an error without a key")
			}
			if l.Begin(m, &req) {
				t.Error("want nothing begun without a key")
			}
			l.Do(t.Context(), m, &req, Hooks{})
			if req.Outcome != measure.ConnectFailed || !strings.Contains(string(req.Error), "credentials_file") || !req.Timeline.Write.IsZero() || len(seen) > 0 {
				t.Errorf("want nothing written, got %s: %s", req.Outcome, req.Error)
			}
		})
	}
}
