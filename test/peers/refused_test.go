//go:build peers

package peers_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"replayd/test/outside"
)

// All invalid flags are reported by name before the server receives anything.
func TestRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"trace.jsonl":               prose,
		"torn.jsonl":                prose + `{"timestamp": 900, "input_length": 70`,
		"wrong.jsonl":               `{"timestamp": 0, "input_length": "many"}` + "\n",
		"taken":                     "a file\n",
		"unigram.json":              `{"version": "1.0", "added_tokens": [], "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]]}}`,
		"pieces.model":              "\x0a\x0e\x0a\x05<unk>\x15\x00\x00\x00\x00\x18\x02",
		"torn.json":                 `{"version": "1.0", "model": {"type": "BPE", "vocab": {"a":`,
		"kept/profile_export.jsonl": `{}` + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		outside.Write(t, dir, name, content)
	}
	e := start(t, dir, "--model", "m")
	file := "--url $ENDPOINT_URL --input-file trace.jsonl --custom-dataset-type mooncake_trace "
	made := "--url $ENDPOINT_URL --isl 50 --osl 5 "
	for _, c := range []struct{ flags, want string }{
		// Flags that contradict each other.
		{file + "--fixed-schedule --user-centric-rate 1 --num-users 3", "--user-centric-rate: contradicts --fixed-schedule: want one way to say when requests are due"},
		{file + "--fixed-schedule --request-rate 3", "--request-rate: contradicts --fixed-schedule"},
		{made + "--request-rate 3 --user-centric-rate 1 --num-users 3", "--user-centric-rate: contradicts --request-rate"},
		{file + "--fixed-schedule --arrival spread", "--arrival: contradicts --fixed-schedule"},
		{file + "--isl 50", "--isl: needs synthetic requests: leave out TRACE or the input file"},
		{"trace.jsonl " + file, "--input-file: want it or TRACE, got both"},
		{"--trace-path trace.jsonl --url $ENDPOINT_URL --streaming", "want the flags of one of them"},
		{"trace.jsonl --url $ENDPOINT_URL --concurrency 3 --lanes 4", "--lanes: contradicts --concurrency"},
		{"trace.jsonl --url $ENDPOINT_URL --slo ttft:1s --goodput e2e:2s", "--goodput: want only one of it and --slo"},
		{made + "--fixed-schedule", "--fixed-schedule: want --input-file too"},
		// Invalid numbers.
		{made + "--request-rate -1", `--request-rate: want requests per second above 0, or inf, got "-1"`},
		{made + "--request-rate 0", `--request-rate: want requests per second above 0, or inf, got "0"`},
		{made + "--user-centric-rate -1 --num-users 3", "--user-centric-rate: want requests per second above 0, got -1"},
		{"trace.jsonl --url $ENDPOINT_URL --arrival poisson --rate -3", "--rate: want"},
		{made + "--concurrency 0", "--concurrency: want an integer from 1 to"},
		{made + "--request-cancellation-rate 101 --request-cancellation-delay 1", "--request-cancellation-rate: want 0 to 100 percent, got 101"},
		{made + "--warmup-request-count -1", "--warmup-request-count: want an integer ≥ 0, got -1"},
		{`--url $ENDPOINT_URL --sequence-distribution "256,128:40;512:60"`, "--sequence-distribution: "},
		{"--url $ENDPOINT_URL --isl -1", "--isl: want a number ≥ 1, got -1"},
		// Bounds on unknown quantities.
		{made + `--goodput "time_to_last_token:5"`, "--goodput: time_to_last_token: want one of"},
		{made + `--goodput "request_latency:soon"`, "--goodput: request_latency: want a duration"},
		{"trace.jsonl --url $ENDPOINT_URL --goodput ttl:5s", `--goodput: ttl: want one of ttft (time_to_first_token), tpot`},
		// Invalid files.
		{"wrong.jsonl --url $ENDPOINT_URL", `wrong.jsonl:1: input_length: want an integer ≥ 1, got "many"`},
		{"torn.jsonl --url $ENDPOINT_URL", "torn.jsonl:4: row: want a JSON object"},
		{"none.jsonl --url $ENDPOINT_URL", "none.jsonl: no such file or directory"},
		{"trace.jsonl --url $ENDPOINT_URL --tokenizer unigram.json", `unigram.json: model.type: want "BPE", got "Unigram"`},
		{"trace.jsonl --url $ENDPOINT_URL --tokenizer pieces.model", "pieces.model: line 2: want a token in base64, a space and its rank"},
		{"trace.jsonl --url $ENDPOINT_URL --tokenizer torn.json", "torn.json: byte 58: unexpected end of JSON input"},
		{"trace.jsonl --url $ENDPOINT_URL --tokenizer nobody/knows-it", `tokenizer "nobody/knows-it": no tokenizer found`},
		{"--url $ENDPOINT_URL --trace-path trace.jsonl --trace-mode benchmark", "--dataset-path: want the file of sharegpt: nothing is downloaded"},
		{"--url $ENDPOINT_URL --trace-path trace.jsonl --trace-mode benchmark --dataset-name no --tokenizer unigram.json", `--dataset-name: dataset: want sharegpt, `},
		// Places that cannot be written to.
		{made + "--artifact-dir taken", "--artifact-dir: artifact directory: mkdir taken: not a directory"},
		{made + "--artifact-dir taken/below", "--artifact-dir: artifact directory: mkdir taken: not a directory"},
		{made + "--artifact-dir /proc/replayd", "--artifact-dir: artifact directory: mkdir /proc/replayd: "},
		{"trace.jsonl --url $ENDPOINT_URL --save-prompts --result-dir /proc/replayd", "--save-prompts: mkdir /proc/replayd: "},
		{"trace.jsonl --url $ENDPOINT_URL --save-result --result-dir taken", "--save-result: mkdir taken: not a directory"},
	} {
		s := shell(t, dir, e.address, "replayd run --model m --log.level warn "+c.flags)
		if s.code != 2 || !strings.Contains(s.warned, c.want) || s.said != "" {
			t.Errorf("run %s:\nwant exit 2 and %q, got %d\n%s%s", c.flags, c.want, s.code, s.said, s.warned)
		}
	}
	// The files of an earlier run stay where they were.
	for _, flags := range []string{made + "--artifact-dir kept --request-rate -1", "--url 127.0.0.1:1 --isl 5 --wait-ready 1s --artifact-dir kept"} {
		if s := shell(t, dir, e.address, "replayd run --model m --log.level error "+flags); s.code == 0 {
			t.Errorf("run %s: want it refused\n%s", flags, s.said)
		}
		has(t, dir, "kept/profile_export.jsonl")
	}
	e.Term(t)
	if log, err := os.ReadFile(e.log); err != nil || len(log) > 0 {
		t.Errorf("want nothing in the engine's log, got %v\n%s", err, log)
	}
	for _, name := range []string{"artifacts", "prompts.jsonl", "result.xlsx"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("want nothing written, there is %s", name)
		}
	}
}

// A record file that was cut in the middle of a line is read as far as it goes, and the report names what is missing.
func TestReportOfAFileThatWasCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := start(t, dir, "--model", "sim")
	runs("artifacts")(t, dir, e.address)
	well(t, shell(t, dir, e.address, "replayd run --url $ENDPOINT_URL --arrival concurrency --concurrency 4 --requests 40 --isl 50 --osl 20 --streaming --artifact-dir other --records records.jsonl"))
	for name, where := range map[string]string{"artifacts/profile_export.jsonl": "artifacts", "records.jsonl": "records.jsonl"} {
		whole, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		whole = regexp.MustCompile(`(?m)^\{"ledger":.*\n`).ReplaceAll(whole, nil)
		if n := bytes.Count(whole, []byte("\n")); n != 40 {
			t.Fatalf("%s: want 40 lines, got %d", name, n)
		}
		outside.Write(t, dir, name, string(whole[:len(whole)-30]))
		s := shell(t, dir, "", "replayd report "+where+" --output cut")
		well(t, s)
		if !strings.Contains(s.warned, name+":40: cut in mid-line") {
			t.Errorf("%s: want it said that line 40 was cut, got %s", name, s.warned)
		}
		s.says(t, "cut/report.html: 39 requests of 1 run")
		page, err := os.ReadFile(filepath.Join(dir, "cut/report.html"))
		if err != nil {
			t.Fatal(err)
		}
		contains(t, string(page), name+":40: cut in mid-line", "39 requests")
	}
	e.Term(t)
}
