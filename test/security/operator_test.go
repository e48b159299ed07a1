package security_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"replayd/test/outside"
)

// File names, values of configurations and of traces, and flags may have any bytes. Each command meets them in what it reads, writes and refuses, and
// no control character of theirs reaches the terminal: neither in results and tables nor in errors.
func TestTextsOfOperatorsAreQuoted(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, goodStream)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	const odd = "a\x1b[31mb\nc\a\u202ed\xffe"
	outside.Write(t, dir, odd+".jsonl", trace)
	outside.Write(t, dir, "bad"+odd, `{"timestamp": 0, "text_input": "a", "output_length": "`+"\\u001b[31m\u202e\"}\n")
	good := fmt.Sprintf("targets: [{name: t, url: %q}]\nworkloads: [{name: w, target: t, trace: {path: %q}}]\n", server.URL, filepath.Join(dir, "other.jsonl"))
	outside.Write(t, dir, "other.jsonl", trace)
	outside.Write(t, dir, "good"+odd+".yaml", good)
	outside.Write(t, dir, "bad"+odd+".yaml", "targets:\n- {name: \"t\\e[31m\\n\", url: \"http://\\e[31m\"}\nworkloads:\n- {name: \"w\\e\", target: \"\\a\", trace: {path: \"no\\e[31m\"}, \"key\\e\": 1}\n")
	said := map[string]bool{}
	for _, args := range []string{
		"check-config ODD", "check-config badODD.yaml", "check-config goodODD.yaml", "check-config goodODD.yaml --probe ODD",
		"serve --config ODD", "serve --config badODD.yaml", "serve --config goodODD.yaml --web.listen-address ODD",
		"trace validate ODD.jsonl", "trace validate badODD", "trace info ODD.jsonl", "trace info badODD", "trace analyze ODD.jsonl", "trace analyze ODD.jsonl --output-file anODD",
		"trace convert ODD.jsonl --to mooncake -o cvODD", "trace convert badODD --to ODD", "trace slice ODD.jsonl --from 0s --to 1s -o slODD",
		"trace synth ODD", "run ODD --url http://127.0.0.1:1", "run badODD --url http://127.0.0.1:1", "run ODD.jsonl --url http://127.0.0.1:1ODD", "run ODD.jsonl --concurrency ODD",
		"run ODD.jsonl --url SERVER --streaming --model mODD --records recODD --artifact-dir artODD", "report artODD", "report recODD --output repODD.html", "report ODD",
		"compare ODD --url SERVER --candidate ODD", "demo ODD", "sim --model mODD --web.listen-address ODD", "health ODD", "pause ODD", "resume ODD", "ODD", "--ODD", "help ODD", "version ODD", "runbook ODD",
	} {
		var words []string
		for word := range strings.FieldsSeq(args) { // before the words have spaces
			words = append(words, strings.NewReplacer("ODD", odd, "SERVER", server.URL).Replace(word))
		}
		said[words[0]] = true
		text, code := command(t, dir, []string{"REPLAYD_ODD=" + odd}, words...)
		if code < 0 {
			t.Errorf("%s: %s", args, text)
		}
		tame(t, args, strings.ReplaceAll(text, mark, "")) // the answer of the server is no secret here
	}
	help, _ := command(t, dir, nil, "help")
	_, commands, _ := strings.Cut(help, "Commands:\n")
	for _, name := range regexp.MustCompile(`(?m)^  ([a-z-]+) `).FindAllStringSubmatch(commands, -1) {
		if !said[name[1]] && !slices.Contains([]string{"completion"}, name[1]) {
			t.Errorf("command %s is not tried", name[1])
		}
	}
	if len(commands) == 0 {
		t.Error("no list of commands")
	}
}
