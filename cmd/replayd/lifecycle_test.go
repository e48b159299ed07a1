package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func newPause(w *world) *cobra.Command  { return newLifecycle(w, "pause", "Pause a daemon") }
func newResume(w *world) *cobra.Command { return newLifecycle(w, "resume", "Resume a daemon") }

// execute runs one command as main does, but without the root command.
func execute(t *testing.T, command func(*world) *cobra.Command, args ...string) (code int, out, say string) {
	t.Helper()
	var stdout bytes.Buffer
	c := command(&world{out: &stdout})
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	if err == nil {
		return exitDone, stdout.String(), ""
	}
	code = exitFailed
	if input, ok := err.(*exitError); ok { //nolint:errorlint // main asks for nothing deeper here
		code = input.code
	}
	return code, stdout.String(), err.Error()
}

func TestCallsOfADaemon(t *testing.T) {
	var asked string
	status, text := http.StatusOK, "All workloads are paused.\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.Path + " " + r.FormValue("workload")
		w.Header().Set("Location", "/login")
		if r.URL.Path == "/login" {
			status = http.StatusOK
		}
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}))
	defer server.Close()
	f := func(command func(*world) *cobra.Command, args []string, wantAsked string, wantCode int, want string) {
		t.Helper()
		asked = ""
		code, out, said := execute(t, command, args...)
		if asked != wantAsked || code != wantCode || out+said != want {
			t.Errorf("%q: want %q, exit %d, %q, got %q, exit %d, %q", args, wantAsked, wantCode, want, asked, code, out+said)
		}
	}
	at := []string{server.URL}
	f(newPause, at, "POST /-/pause ", 0, text)
	f(newResume, at, "POST /-/resume ", 0, text)
	f(newHealth, at, "GET /-/healthy ", 0, text)
	f(newPause, []string{strings.TrimPrefix(server.URL, "http://"), "--workload", "a.b"}, "POST /-/pause a.b", 0, text)
	f(newPause, []string{server.URL + "/behind/proxy/?a=b#c"}, "POST /behind/proxy/-/pause ", 0, text)

	status, text = http.StatusNotFound, "want the name of a workload, got \"x\"\n"
	f(newResume, []string{server.URL, "--workload=x"}, "POST /-/resume x", 1, server.URL+": want status 200, got 404 Not Found: want the name of a workload, got \"x\"")
	status, text = http.StatusForbidden, "Lifecycle API is not enabled.\n"
	f(newPause, at, "POST /-/pause ", 1, server.URL+": want status 200, got 403 Forbidden: Lifecycle API is not enabled.\n"+
		"the daemon needs --web.enable-lifecycle, or web.enable_lifecycle in its configuration")
	status, text = http.StatusUnauthorized, "Unauthorized\n"
	f(newHealth, []string{strings.Replace(server.URL, "://", "://me:sesame@", 1)}, "GET /-/healthy ", 1,
		strings.Replace(server.URL, "://", "://me:xxxxx@", 1)+": want status 200, got 401 Unauthorized: Unauthorized\n--http.config.file gives the password")
	status, text = http.StatusFound, "Please log in.\n"
	f(newPause, at, "POST /-/pause ", 1, server.URL+": want status 200, got 302 Found: Please log in.")
	status, text = http.StatusOK, strings.Repeat("a", 2*maxAnswer)
	f(newPause, at, "POST /-/pause ", 0, text[:maxAnswer]+"\n")

	for want, args := range map[string][]string{
		`--workload: want the name of a workload, or no such flag for all, got ""`:       {server.URL, "--workload", ""},
		`want an http or https address such as http://127.0.0.1:9797, got "ftp://x"`:     {"ftp://x"},
		`want an http or https address such as http://127.0.0.1:9797, got "http://"`:     {"http://"},
		`want an http or https address such as http://127.0.0.1:9797, got "::"`:          {"::"},
		`--timeout: want a duration > 0, got 0s`:                                         {server.URL, "--timeout", "0s"},
		`accepts at most 1 arg(s), received 2 (usage: pause [URL] [flags])`:              {"a", "b"},
		`--http.config.file: nowhere.yaml: open nowhere.yaml: no such file or directory`: {server.URL, "--http.config.file", "nowhere.yaml"},
	} {
		f(newPause, args, "", 2, want)
	}
}

// A call to a daemon that does not answer ends at the timeout.
func TestCallOfADaemonThatHangs(t *testing.T) {
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer server.Close()
	defer close(over)
	code, _, said := execute(t, newPause, server.URL, "--timeout", "20ms")
	if want := `Post "` + server.URL + `/-/pause": context deadline exceeded`; code != exitFailed || said != want {
		t.Errorf("want exit 1, %q, got %d, %q", want, code, said)
	}
}

// One HTTP client configuration file gives the CA and the password to all calls.
func TestCallsOfASecuredDaemon(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintln(w, r.URL.Path, r.FormValue("workload"))
	}))
	defer server.Close()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write("password.txt", "sesame\n")
	// Paths are relative to the file.
	good := write("good.yaml", "basic_auth: {username: me, password_file: password.txt}\ntls_config: {ca_file: ca.pem}\n")
	for path, command := range map[string]func(*world) *cobra.Command{"/-/healthy": newHealth, "/-/pause": newPause, "/-/resume": newResume} {
		if code, out, said := execute(t, command, server.URL, "--http.config.file", good); code != 0 || strings.TrimSpace(out) != path {
			t.Errorf("want exit 0, %s, got %d, %s%s", path, code, out, said)
		}
		if code, _, said := execute(t, command, server.URL); code != exitFailed || !strings.Contains(said, "certificate signed by unknown authority") {
			t.Errorf("%s without the CA: want exit 1, got %d, %s", path, code, said)
		}
	}
	open := write("open.yaml", "tls_config: {ca_file: ca.pem}\n")
	if code, _, said := execute(t, newPause, server.URL, "--http.config.file", open); code != exitFailed || !strings.Contains(said, "got 401 Unauthorized") {
		t.Errorf("without the password: want exit 1, got %d, %s", code, said)
	}
	for text, want := range map[string]string{
		"basic_auth: {usrname: me}":     "bad.yaml: yaml: unmarshal errors:\n  line 1: field usrname not found",
		"tls_config: {ca_file: no.pem}": "no.pem: no such file or directory",
	} {
		bad := write("bad.yaml", text)
		code, _, said := execute(t, newPause, server.URL, "--http.config.file", bad)
		if code != exitInput || !strings.HasPrefix(said, "--http.config.file: "+dir) || !strings.Contains(said, want) {
			t.Errorf("%s: want exit 2, %q, got %d, %q", text, want, code, said)
		}
	}
}

func TestCallsHaveLimits(t *testing.T) {
	for command, want := range map[string]time.Duration{"pause": 10 * time.Second, "health": 5 * time.Second} {
		build := map[string]func(*world) *cobra.Command{"pause": newPause, "health": newHealth}[command]
		if got, err := build(&world{}).Flags().GetDuration("timeout"); err != nil || got != want {
			t.Errorf("%s: want %v, got %v, %v", command, want, got, err)
		}
	}
}

// Another program at the daemon's address may repeat the password, in an answer or in something that is none.
func TestCallsHideThePassword(t *testing.T) {
	const password = "kanarie-daemon"
	for name, answer := range map[string]string{
		"page":       "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhealthy, %s",
		"cut":        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + strings.Repeat("x", maxAnswer-8) + "%s",
		"refusal":    "HTTP/1.1 401 Not %[1]s\r\nConnection: close\r\n\r\nnot %[1]s",
		"not HTTP":   "%s\r\n\r\n",
		"a redirect": "HTTP/1.1 302 Found\r\nLocation: /%s\r\nContent-Length: 0\r\n\r\n",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, sent, _ := r.BasicAuth()
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprintf(conn, answer, sent)
			_ = conn.Close()
		}))
		file := filepath.Join(t.TempDir(), "client.yaml")
		if err := os.WriteFile(file, []byte("basic_auth: {username: me, password: "+password+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{server.URL, "--http.config.file", file}, {strings.Replace(server.URL, "://", "://me:"+password+"@", 1)}} {
			for _, command := range []func(*world) *cobra.Command{newHealth, newPause, newResume} {
				if _, out, said := execute(t, command, args...); strings.Contains(out+said, "kanari") || !strings.Contains(out+said, "<secret>") && name != "a redirect" {
					t.Errorf("%s: got %.200q, %.200q", name, out, said)
				}
			}
		}
		server.Close()
	}
}
