package security_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"replayd/test/outside"
)

// trace has a prompt that no log may show.
const trace = `{"timestamp": 0, "text_input": "kanarie-prompt", "output_length": 4}` + "\n"

// credentials returns an http section in one of its forms and writes the files that it names.
func credentials(t *testing.T, dir string, form int) map[string]any {
	t.Helper()
	file := func(name string) string { return outside.Write(t, dir, name, canary(name)+"\n") }
	section := map[string]any{"http_headers": map[string]any{
		"X-Api-Key": map[string]any{"values": []string{canary("value")}}, "X-Secret": map[string]any{"secrets": []string{canary("secret")}},
		"X-File": map[string]any{"files": []string{file("header")}},
	}}
	switch form % 4 {
	case 0:
		section["authorization"] = map[string]any{"credentials": canary("key")}
	case 1:
		section["authorization"] = map[string]any{"type": "Token", "credentials_file": file("key")}
	case 2:
		section["basic_auth"] = map[string]any{"username": "me", "password": canary("password")}
	default:
		section["basic_auth"] = map[string]any{"username": "me", "password_file": file("password")}
	}
	return section
}

// daemon writes a configuration with every fault of the parrot, for requests and for every other query of replayd.
func daemon(t *testing.T, dir string, p *parrot) string {
	t.Helper()
	var targets, workloads, gpus []any
	at := func(fault, place, page string) string {
		return strings.Replace(p.URL, "://", "://"+word("user")+":"+word("pass")+"@", 1) + "/" + fault + "/" + place + "/" + page + "?api_key=" + word("query")
	}
	for i, fault := range append(faults(), "none") {
		for _, place := range []string{"own", "all"} {
			name := fault + "-" + place
			scraped := credentials(t, dir, i+1)
			switch i % 5 {
			case 1:
				scraped["proxy_url"] = strings.Replace(p.URL, "://", "://"+word("proxy")+":"+word("proxypass")+"@", 1)
			case 2:
				scraped = map[string]any{"oauth2": map[string]any{"client_id": "me", "client_secret": canary("oauth"), "token_url": p.URL + "/oauth/token"}}
			}
			targets = append(targets, map[string]any{
				"name": name, "url": p.URL + "/" + fault + "/" + place + "?api-key=" + word("address"), "http": credentials(t, dir, i),
				"extra_body": map[string]any{"api_key": canary("body")},
				"metrics":    map[string]any{"url": at(fault, place, "metrics"), "interval": "1s", "http": scraped},
			})
			workloads = append(workloads, map[string]any{
				"name": name, "target": name, "trace": map[string]any{"path": outside.Write(t, dir, "trace.jsonl", trace)},
				"repeat": map[string]any{"every": "2s", "align": "start"}, "request": map[string]any{"headers": map[string]any{"X-Mark-Token": canary("mark")}},
			})
			gpus = append(gpus, map[string]any{"target": name, "dcgm_exporter": at(fault, place, "dcgm"), "interval": "1s", "http": credentials(t, dir, i+2)})
		}
	}
	text, err := json.Marshal(map[string]any{ // JSON is YAML
		"web":     map[string]any{"enable_lifecycle": true, "enable_pprof": true},
		"records": map[string]any{"path": filepath.Join(dir, "out", "records.jsonl")},
		"drain":   "1s", "targets": targets, "workloads": workloads, "gpus": gpus,
	})
	if err != nil {
		t.Fatal(err)
	}
	return outside.Write(t, dir, "replayd.yaml", string(text))
}

// Whatever a server repeats, no secret of the configuration leaves the daemon: in no log, page, metric, profile, answer
// or record. No redirect is followed to another host.
func TestDaemonKeepsItsSecrets(t *testing.T) {
	for _, format := range []string{"logfmt", "json"} {
		t.Run(format, func(t *testing.T) {
			p, dir := newParrot(t), t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "out"), 0o700); err != nil {
				t.Fatal(err)
			}
			file := daemon(t, dir, p)
			good, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("REPLAYD_API_KEY", canary("env"))
			t.Setenv("HTTP_PROXY", "http://me:"+word("env")+"@127.0.0.1:1")
			listen := outside.Address(t)
			log := filepath.Join(dir, "out", "log")
			d := outside.Start(t, log, binary, "serve", "--config", file, "--web.listen-address", listen, "--log.level", "debug", "--log.format", format)
			base := "http://" + listen
			d.Ready(t, http.DefaultClient, base+"/-/ready")
			outside.Until(t, func() error { return p.allHeard(append(faults(), "none")) })

			for _, path := range []string{
				"/", "/metrics", "/config", "/live", "/live/snapshot.json", "/live/events", "/runbook", "/-/ready", "/-/healthy", "/nowhere",
				"/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1",
			} {
				if status, text := fetch(t, http.MethodGet, base+path); status == 200 || path == "/nowhere" {
					clean(t, path, text)
				} else {
					t.Errorf("%s: want 200, got %d", path, status)
				}
			}
			for name, bad := range badConfigs(string(good)) {
				outside.Write(t, dir, "replayd.yaml", bad)
				status, text := fetch(t, http.MethodPost, base+"/-/reload")
				if status != http.StatusInternalServerError {
					t.Errorf("%s: want 500, got %d", name, status)
				}
				clean(t, "the answer to a reload, "+name, text)
			}
			for _, path := range []string{"/-/pause", "/-/resume?workload=none-own", "/-/pause?workload=nobody"} {
				_, text := fetch(t, http.MethodPost, base+path)
				clean(t, path, text)
			}
			d.Signal(t, syscall.SIGTERM)
			d.Wait(t)
			cleanFiles(t, filepath.Join(dir, "out"))
			p.untouchedElsewhere(t)
		})
	}
}

// allHeard returns an error that names a place not requested yet.
func (p *parrot) allHeard(faults []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range faults {
		if p.heard["a row at /"+f+"/own/v1/chat/completions"] == 0 || p.heard["a row at /"+f+"/all/v1/chat/completions"] == 0 {
			return fmt.Errorf("no row has come to /%s", f)
		}
		for _, path := range []string{"/own/v1/models", "/all/v1/models", "/own/metrics", "/all/dcgm"} {
			if f == "none" && path == "/own/metrics" { // that page is for tokens
				continue
			}
			if n := p.heard["/"+f+path]; n == 0 && !p.tokens(f, path) {
				return fmt.Errorf("nobody has asked for /%s%s", f, path)
			}
		}
	}
	if p.heard["/oauth/token"] == 0 {
		return fmt.Errorf("nobody has asked for a token")
	}
	return nil
}

// tokens reports whether a page is requested with an OAuth token that cannot be had.
func (p *parrot) tokens(fault, path string) bool {
	if path != "/own/metrics" {
		return false
	}
	for i, f := range faults() {
		if f == fault {
			return i%5 == 2
		}
	}
	return false
}

// untouchedElsewhere checks that no redirect was followed.
func (p *parrot) untouchedElsewhere(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lured > 0 {
		t.Errorf("want no redirect followed to another address, got %d", p.lured)
	}
}

// Invalid flags are not repeated: the text beside a missing colon may be the key.
func TestFlagsAreNotRepeated(t *testing.T) {
	dir := t.TempDir()
	outside.Write(t, dir, "trace.jsonl", trace)
	outside.Write(t, dir, "client.yaml", "authorization: {credentials: "+word("file")+"}\n")
	for _, args := range [][]string{
		{"-H", "Bearer " + word("flag")},
		{"--header", ":" + word("flag")},
		{"-H", "Authorization: " + word("flag")},
		{"-H", "Authorization: Basic " + word("flag")},
		{"-H", "Authorization: Bearer " + word("flag"), "--api-key", word("key")},
		{"-H", "Proxy-Authorization: Bearer " + word("flag")},
		{"-H", "Authorization: Bearer " + word("flag"), "Authorization: Bearer " + word("two")},
		{"-H", "Cookie: " + word("flag"), "Cookie: " + word("two")},
		{"-H", "X-Key: " + word("flag"), "--http.config.file", "client.yaml"},
		{"-H", "Cookie: a=b\r\nX: " + word("flag")},
		{"--extra-inputs", word("flag")},
		{"--extra-inputs", "{\"api_key\": \"" + word("flag")},
	} {
		said, code := command(t, dir, nil, append([]string{"run", "trace.jsonl", "--url", "http://127.0.0.1:1"}, args...)...)
		if flag := map[bool]string{true: "--extra-inputs", false: "--"}[args[0] == "--extra-inputs"]; code != 2 || !strings.Contains(said, "replayd: "+flag) {
			t.Errorf("%q: want exit code 2 and the flag, got %d: %s", args[:1], code, said)
		}
		clean(t, args[0], said)
	}
}

// A run keeps secrets too: in its report, its log, its records and all files that it and report write.
func TestRunKeepsItsSecrets(t *testing.T) {
	p := newParrot(t)
	t.Cleanup(func() { p.untouchedElsewhere(t) })
	for i, fault := range []string{"none", "401", "302", "503-packed", "no-http-cut", "garbage-cut", "finish"} { // the daemon meets all faults
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			outside.Write(t, dir, "trace.jsonl", trace)
			text, err := json.Marshal(credentials(t, dir, i))
			if err != nil {
				t.Fatal(err)
			}
			outside.Write(t, dir, "client.yaml", string(text))
			page := strings.Replace(p.URL, "://", "://"+word("user")+":"+word("pass")+"@", 1) + "/" + fault + "/own/metrics?token=" + word("query")
			args := []string{
				"run", "trace.jsonl", "--url", p.URL + "/" + fault + "/own?sig=" + word("address"), "--records", "out/records.jsonl", "--artifact-dir", "out/artifacts", "--log.level", "debug",
				"--log.format", []string{"logfmt", "json"}[i%2], "--streaming", "--server-metrics", page, "--gpu-telemetry", page,
			}
			switch i % 3 {
			case 0:
				args = append(args, "--api-key", canary("flag"), "--header", "X-Api-Key: "+canary("flag"), "--extra-inputs", "api_key:"+word("extra"))
			case 1:
				args = append(args, "-H", "Authorization: Bearer "+canary("flag"), "api-key:"+word("second"), "-HCookie: sid="+canary("cookie"), "--header=X-Auth: "+word("auth"))
			default:
				args = append(args, "--http.config.file", "client.yaml")
			}
			if err := os.Mkdir(filepath.Join(dir, "out"), 0o700); err != nil {
				t.Fatal(err)
			}
			said, code := command(t, dir, nil, args...)
			if want := map[bool]int{true: 0, false: 1}[fault == "none" || fault == "finish"]; code != want {
				t.Errorf("want exit code %d, got %d: %s", want, code, said)
			}
			clean(t, "what run says", said)
			if said, code := command(t, dir, nil, "report", "out/artifacts", "--output", "out/report.html"); code == 0 {
				clean(t, "what report says", said)
			}
			cleanFiles(t, filepath.Join(dir, "out"))
		})
	}
}
