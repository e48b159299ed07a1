package cli

import (
	"cmp"
	"regexp"
	"strings"

	"replayd/internal/dataset"
)

// vllmBound matches a bound of vllm bench serve's --goodput: its number has no unit.
var vllmBound = regexp.MustCompile(`(:\s*[\d.]+)(\s|,|$)`)

// takeVLLM translates the flags of vllm bench serve (vllm/benchmarks/serve.py, 2026) to AIPerf's.
func (o *Flags) takeVLLM(path string) {
	a, t, w := &o.Aliases, &o.Target, &o.Workload
	o.wrong.If(path != "", "TRACE", "want --dataset-path in place of %q beside flags of vllm bench serve", path)
	switch a.backend {
	case "openai-chat":
		t.API = "chat"
	case "", "openai", "vllm", "sglang", "lmdeploy", "scalellm", "llama.cpp":
		t.API = "completions"
	default:
		o.wrong.Add("--backend", "want openai or vllm (completions) or openai-chat (chat): "+
			"others do not speak these APIs, got %q", a.backend)
	}
	if a.backend == "" && a.endpoint != "" {
		t.Path = a.endpoint
		t.FollowAddress()
	}
	if !o.given.Changed("host") {
		a.host = "127.0.0.1"
	}
	o.takeAddress()
	t.Model = cmp.Or(a.servedModel, t.Model)
	switch given := o.given.Changed("requests"); {
	case given:
		o.wrong.If(w.Rows == 0, "--requests", "want an integer ≥ 1, got 0")
	case o.Duration == 0:
		w.Rows = 1000
	}
	a.requestRate = cmp.Or(a.requestRate, "inf")
	for i, h := range a.headers { // NAME=VALUE
		if name, value, ok := strings.Cut(h, "="); ok && !strings.Contains(name, ":") {
			a.headers[i] = name + ":" + value
		}
	}
	if a.savePrompts || a.saveExcel {
		o.artifacts = cmp.Or(o.artifacts, a.resultDir, "artifacts")
		a.saveExcel = false // its result is JSON
	}
	o.takeVLLMRows()
	o.takeAIPerf("")
}

// takeVLLMRows determines the source of the rows.
func (o *Flags) takeVLLMRows() {
	a := &o.Aliases
	name := "random"
	if o.given.Changed("dataset-name") {
		name = a.datasetName
	}
	if a.ignoreEOS || name == "random" { // which has it anyway
		o.Target.Output = "exact"
	}
	switch name {
	case "random":
		o.wrong.If(a.datasetPath != "", "--dataset-path", "want --dataset-name sharegpt or custom too: random has no file")
		if !o.given.Changed("isl") {
			a.madeUp.InputTokens = 1024
		}
		if !o.given.Changed("osl") {
			a.madeUp.OutputTokens = 128
		}
		return
	case "sharegpt":
		a.publicDataset = name
	case "burstgpt":
		a.datasetType = "burst_gpt_trace"
	default:
		format, err := dataset.Named(name)
		o.fault("--dataset-name", err)
		a.datasetType = string(cmp.Or(format, dataset.SingleTurn))
		if err != nil {
			a.datasetPath = cmp.Or(a.datasetPath, name) // one fault is enough
		}
	}
	o.wrong.If(a.datasetPath == "", "--dataset-path", "want the file of %s: nothing is downloaded", name)
	a.inputFile = cmp.Or(a.datasetPath, name)
}
