package security_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/types"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unicode/utf8"

	"replayd/test/outside"
)

// readers are the packages that read what comes from servers, metrics pages and drivers.
var readers = []string{
	"internal/openai", "internal/openai/internal/chunk", "internal/openai/internal/wire", "internal/scrape", "internal/gpu", "internal/gpu/dcgm", "internal/measure",
}

// ours lists the fields with strings of the readers that no text from outside is kept in: configuration, names of replayd's own, and texts on their
// way to the door, which are not kept.
var ours = map[string]string{
	// The configuration, traces and this machine.
	"openai.Body": "RequestID", "openai.Echo": "answer", "openai.Target": "Name UserAgent", "openai.Options": "URL Path Host Server Model ExtraBody Replica",
	"openai.RequestFields": "CacheSalt User Headers Own Session SessionField", "openai.endpoint": "host name address root query path", "openai.field": "key",
	"openai.pod":    "address", // as configured, or an address from DNS, which is parsed before
	"openai.dialer": "good", "openai.goodAddress": "address",
	"openai.header": "name value", "openai.Client": "own", "openai.hidden": "own requests",
	"scrape.address": "target replica", "scrape.Collector": "replicas", "scrape.endpoint": "replica found",
	"scrape.FetchOptions": "Address UserAgent", "scrape.Fetcher": "own", "scrape.Values": "Target",
	"scrape.TargetOptions": "Target URL Page Replicas Hostname UserAgent", "scrape.Target": "urls",
	"gpu.origin": "target kind address", "gpu.place": "target", "gpu.Exporter": "url", "gpu.Select": "Namespace Pod",
	"gpu.SMI": "path unknown", "gpu.WatchOptions": "Target Kind Address",
	"dcgm.Options": "Address", "dcgm.address": "given path host", "dcgm.session": "tag", "dcgm.dcgmSource": "name told",
	"measure.LedgerLine": "Workload Target Shard SLO", "measure.Ledger": "Broken", "measure.Request": "ID Session Finish Model", "measure.Session": "Name",
	// The vocabulary.
	"scrape.state": "engine", "scrape.Reading": "Engine", "scrape.Quantity": "Name", "scrape.Role": "noun key",
	"scrape.Family": "Name Help", "scrape.Vocabulary": "engines rows wanted", "chunk.end": "name",
	"scrape.prefix": "text engine", "scrape.Row": "Engine Family Quantity Take Select Prefer Merge Rank Less Plus checked",
	"gpu.Field": "Names Name Reason Help smi", "gpu.column": "name", "gpu.other": "name", "dcgm.call": "name",
	// On the way to the door, byte for byte, or keys under which it is looked up.
	"chunk.Model": "ID OwnedBy Parent", "chunk.Chunk": "Message", "openai.failure": "text", "openai.served": "model", "openai.replicaNames": "names",
	"scrape.Page": "Samples texts damaged", "scrape.reader": "lastName last", "scrape.doubted": "name last", "scrape.badLine": "why", "dcgm.dcgmError": "call text",
}

// Only internal/secret makes a secret.Text, and what is read from outside is kept in no string besides it. The table of SECURITY.md lists each
// exported field of the type, so that a new text from outside is either of the type or fails here.
func TestOneDoor(t *testing.T) {
	var kept []string
	found := map[string]string{}
	for name, file := range product(t) {
		dir, pkg := path.Dir(name), file.Name.Name
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if dir != "internal/secret" && types.ExprString(n.Fun) == "secret.Text" {
					t.Errorf("%s converts a string to a secret.Text: only Set.Text may", name)
				}
			case *ast.TypeSpec:
				s, ok := n.Type.(*ast.StructType)
				if !ok {
					return true
				}
				for _, f := range s.Fields.List {
					kind := types.ExprString(f.Type)
					for _, id := range f.Names {
						field := pkg + "." + n.Name.Name
						if kind == "secret.Text" && ast.IsExported(n.Name.Name) && id.IsExported() {
							kept = append(kept, field+"."+id.Name)
						}
						if slices.Contains(readers, dir) && regexp.MustCompile(`\bstring\b|\bany\b|labels\.`).MatchString(kind) && !strings.HasPrefix(kind, "func") {
							found[field] += " " + id.Name
						}
					}
				}
			}
			return true
		})
	}
	for field, names := range found {
		for id := range strings.FieldsSeq(names) {
			if !slices.Contains(append(strings.Fields(ours[field]), "Labels"), id) { // the labels of a page's sample go with the page
				t.Errorf("%s.%s is a string: a text from outside has to be a secret.Text, and any other has to be in the list of this test", field, id)
			}
		}
	}
	for field, names := range ours {
		for id := range strings.FieldsSeq(names) {
			if !slices.Contains(strings.Fields(found[field]), id) {
				t.Errorf("the list of this test has %s.%s, and the product does not", field, id)
			}
		}
	}
	var told []string
	for field := range textsOfServers(t) {
		told = append(told, field)
	}
	slices.Sort(kept)
	slices.Sort(told)
	if !slices.Equal(kept, told) {
		t.Errorf("want the fields of secret.Text in SECURITY.md:\n%s\ngot\n%s", strings.Join(kept, "\n"), strings.Join(told, "\n"))
	}
}

// textsOfServers reads the table of SECURITY.md: for each field the places to which it goes.
func textsOfServers(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "## Texts of servers")
	if !found {
		t.Fatal("SECURITY.md has no table of the texts of servers")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	all := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| [^|]+ \| ([^|]+) \| [^|]+ \| ([^|]+) \|$`).FindAllStringSubmatch(table, -1) {
		for _, f := range regexp.MustCompile("`(\\w+\\.\\w+\\.\\w+)`").FindAllStringSubmatch(row[1], -1) {
			all[f[1]] = row[2]
		}
	}
	return all
}

// markOf is the word by which the text of a field is found. It is what is left of the text that a server sends.
func markOf(field string) string {
	return "seen" + strings.ToLower(strings.NewReplacer(".", "").Replace(field))
}

const noise = "\x1b[31m\a\u202e\r\n"

// hostile is the text that a server sends for a field: its mark, the key in its usual spellings, control characters and then very much.
func hostile(field string, most int) string {
	key := canary("key")
	said := markOf(field) + " " + noise
	for _, spelling := range []string{key, quoted(key), url.QueryEscape(key), url.PathEscape(key), html.EscapeString(key), strconv.Quote(key)} {
		said += spelling + " "
	}
	return said + strings.Repeat("x", max(0, most-len(said)))
}

// A joker is a server that answers with hostile texts. What HTTP forbids in a header comes with some answers only.
type joker struct{ pages, answers atomic.Int64 }

// label is a hostile label value; it is escaped as the text format has it.
func label(field string, most int) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(hostile(field, most))
}

// ServeHTTP implements http.Handler. The first word of a path is the target's name.
func (j *joker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	target, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	say := func(status int, kind, text string) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
	last := path.Base(r.URL.Path)
	switch {
	case last == "metrics":
		most := 900 // a label has 1 KiB
		if j.pages.Add(1)%4 == 0 {
			most = 1 << 20
		}
		say(200, "text/plain", fmt.Sprintf("vllm:num_requests_running{model_name=%q,engine=\"%s\"} 1\nvllm:num_requests_running{model_name=\"%s\",engine=\"%[2]s \a\"} 2\n",
			"", label("scrape.Figure.Rank", most), label("scrape.Reading.Model", most)))
	case last == "dcgm":
		of := func(field string) string { return label("gpu.Device."+field, 900) }
		say(200, "text/plain", fmt.Sprintf("DCGM_FI_DEV_POWER_USAGE{gpu=\"%s\",UUID=\"%s\",modelName=\"%s\",Hostname=\"%s\",namespace=\"%s\",pod=\"%s\",container=\"%s\"} 9\n"+
			"DCGM_FI_PROF_SM_ACTIVE{gpu=\"%[1]s\",UUID=\"%[2]s\",GPU_I_PROFILE=\"%[8]s\",GPU_I_ID=\"%[9]s\"} 0.5\n"+
			"DCGM_FI_DEV_POWER_USAGE{gpu=\"%[1]s\",UUID=\"%[2]s \a\"} 9\n", // the same device, as it is shown
			of("Index"), of("UUID"), of("Model"), of("Hostname"), of("Namespace"), of("Pod"), of("Container"), of("Profile"), of("Instance")))
	case last == "models" && target == "broken":
		say(500, "application/json", `{"error":{"message":`+quoted(hostile("replay.Health.Text", 1<<20))+`}}`)
	case last == "models" && target == "nameless":
		say(200, "application/json", `{"data":[{"id":`+quoted("notused"+noise)+`,"owned_by":`+quoted(hostile("openai.Model.OwnedBy", 1<<20))+`}]}`)
	case last == "models":
		say(200, "application/json", `{"data":[{"id":"`+markOf("openai.Model.ID")+`","owned_by":`+quoted(hostile("openai.Model.OwnedBy", 1<<20))+`}]}`)
	case target == "broken":
		say(500, "application/json", `{"error":{"message":`+quoted(hostile("measure.Request.Error", 1<<20))+`}}`)
	case !bytes.Contains(body, []byte(`"stream":true`)): // the probe of the chat template's own tokens
		say(200, "application/json", `{"choices":[{"message":{"content":"a"},"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`)
	default:
		body := strings.ReplaceAll(goodStream, `"stop"`, quoted(hostile("measure.Request.FinishReason", 1<<20)))
		body = strings.ReplaceAll(body, `"content"`, `"new":`+quoted(hostile("measure.Request.UnreadText", 1<<20))+`,"content"`)
		replica := markOf("measure.Request.Replica") + " Authorization: Bearer " + canary("key") + "\u202e\xff" + strings.Repeat("x", 9000)
		switch j.answers.Add(1) % 4 {
		case 0:
			replica += noise[:2]
		case 1:
			replica += strings.Repeat("x", 1<<20)
		}
		raw(func(string) string {
			return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Replica: %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", replica, len(body), body)
		})(w, "", r)
	}
}

// tame checks a text that leaves replayd: no part of the key, no control character, no part of a long text beyond the bounds.
func tame(t *testing.T, where, text string) {
	t.Helper()
	clean(t, where, text)
	if !utf8.ValidString(text) {
		t.Errorf("%s is not valid UTF-8", where)
	}
	for _, r := range text {
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r >= 0x7f && r < 0xa0 || r == 0x202e {
			at := strings.IndexRune(text, r)
			t.Errorf("%s has the control character %U: …%q…", where, r, text[max(0, at-100):min(len(text), at+50)])
			break
		}
	}
	for _, bad := range []string{strings.Repeat("x", 600), "notused"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s has %.20s…", where, bad)
		}
	}
	if at := regexp.MustCompile(`(?:^|[^\\])\\u(?:001b|0007|202e)`).FindStringIndex(text); at != nil && strings.HasSuffix(where, "json") {
		t.Errorf("%s has an escaped control character: …%q…", where, text[max(0, at[0]-100):min(len(text), at[1]+50)])
	}
}

// jokes writes a configuration of which each part is answered with hostile texts.
func jokes(t *testing.T, dir, base string) string {
	t.Helper()
	smi := outside.Write(t, dir, "nvidia-smi", "#!/bin/sh\nprintf '0, smi-uuid "+`\033[31m\007\342\200\256`+"'\nfor f in $(echo \"$1\" | tr ',' ' '); do printf ', 1'; done | cut -c7-\n")
	if err := os.Chmod(smi, 0o700); err != nil {
		t.Fatal(err)
	}
	key := map[string]any{"authorization": map[string]any{"credentials": canary("key")}}
	var targets, workloads []any
	for _, name := range []string{"good", "candidate", "broken", "nameless"} {
		targets = append(targets, map[string]any{
			"name": name, "url": base + "/" + name, "http": key, "replica_header": "X-Replica",
			"metrics": map[string]any{"url": base + "/" + name + "/metrics", "interval": "1s", "http": map[string]any{"follow_redirects": false}},
		})
		if name != "candidate" {
			workloads = append(workloads, map[string]any{
				"name": name, "target": name, "trace": map[string]any{"path": outside.Write(t, dir, "trace.jsonl", trace)}, "repeat": map[string]any{"every": "1s", "align": "start"},
			})
		}
	}
	text, err := json.Marshal(map[string]any{
		"records": map[string]any{"path": filepath.Join(dir, "out", "records.jsonl")}, "state": map[string]any{"path": filepath.Join(dir, "out", "state.json")},
		"drain": "1s", "targets": targets, "workloads": workloads,
		"comparisons": []any{map[string]any{"name": "rollout", "workload": "good", "candidate": "candidate", "min_pairs": 3, "min_time": "1s"}},
		"gpus": []any{
			map[string]any{"target": "good", "dcgm_exporter": base + "/good/dcgm", "interval": "1s"}, map[string]any{"target": "broken", "nvidia_smi": smi, "interval": "1s"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return outside.Write(t, dir, "replayd.yaml", string(text))
}

// Each text of SECURITY.md's table comes from a server with the key, ESC, line ends and a megabyte. It is seen where the table says, and nowhere
// is more of it than its first printable characters.
func TestTextsOfServers(t *testing.T) {
	server := httptest.NewServer(&joker{})
	t.Cleanup(server.Close)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := jokes(t, dir, server.URL)
	listen := outside.Address(t)
	logs := filepath.Join(dir, "out", "log")
	d := outside.Start(t, logs, binary, "serve", "--config", config, "--web.listen-address", listen, "--log.level", "debug")
	base := "http://" + listen
	d.Ready(t, http.DefaultClient, base+"/-/ready")
	seen := map[string]string{}
	look := func() {
		for where, path := range map[string]string{
			"metrics": "/metrics", "live": "/live/snapshot.json", "events": "/live/events", "comparisons": "/-/comparisons", "page": "/", "config": "/config", "live page": "/live",
		} {
			_, seen[where] = fetch(t, http.MethodGet, base+path)
		}
		for where, file := range map[string]string{"log": logs, "records": filepath.Join(dir, "out", "records.jsonl")} {
			if text, err := os.ReadFile(file); err == nil {
				seen[where] = string(text)
			}
		}
	}
	table := textsOfServers(t)
	missing := func() (all []string) {
		for field, places := range table {
			for _, place := range regexp.MustCompile(`metrics|records|log|live`).FindAllString(places, -1) {
				if !strings.Contains(seen[place], markOf(field)) {
					all = append(all, field+" in "+place)
				}
			}
			for where, text := range seen {
				if strings.TrimSpace(places) == "nowhere" && strings.Contains(text, markOf(field)) {
					t.Errorf("%s is in %s", field, where)
				}
			}
		}
		slices.Sort(all)
		return all
	}
	outside.Until(t, func() error {
		look()
		if m := missing(); len(m) > 0 || !strings.Contains(seen["comparisons"], "rollout") || !strings.Contains(seen["metrics"], "smi-uuid") {
			return fmt.Errorf("not seen: %s", strings.Join(m, ", "))
		}
		return nil
	})
	for where, text := range seen {
		if where != "live page" && where != "log" { // where a backslash is one
			where += ", json"
		}
		tame(t, where, text)
	}
	if !regexp.MustCompile(`\nreplayd_engine_requests_running\{.*\} 3\n`).MatchString(seen["metrics"]) {
		t.Error("want one series with the sum of the two ranks whose labels become equal")
	}
	d.Signal(t, syscall.SIGTERM)
	d.Wait(t)
	if info, err := os.Stat(filepath.Join(dir, "out", "state.json")); err != nil || info.Size() == 0 { // it is read below, with the other files
		t.Errorf("want a state file: %v", err)
	}

	report := filepath.Join(dir, "out", "report.html")
	said, _ := command(t, dir, nil, "report", filepath.Join(dir, "out", "records.jsonl"), "--output", report)
	tame(t, "what report says", said)
	for target, want := range map[string]int{"good": 0, "broken": 1} {
		said, code := command(t, dir, nil, "run", "trace.jsonl", "--url", server.URL+"/"+target, "--api-key", canary("key"), "--streaming", "--replica-header", "X-Replica",
			"--model", "m", "--server-metrics", server.URL+"/"+target+"/metrics", "--gpu-telemetry", server.URL+"/good/dcgm", "--artifact-dir", "out/"+target, "--records", "out/"+target+".jsonl")
		if code != want && target == "broken" {
			t.Errorf("%s: want exit code %d, got %d: %s", target, want, code, said)
		}
		tame(t, "what run says", said)
		if target == "broken" && !strings.Contains(said, markOf("measure.Request.Error")) {
			t.Errorf("want the server's error in the terminal's text, got %s", said)
		}
	}
	err := filepath.WalkDir(filepath.Join(dir, "out"), func(path string, f os.DirEntry, err error) error {
		if err != nil || f.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.HasPrefix(text, []byte("PK")) {
			return err
		}
		tame(t, path, string(text))
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
