package cli

import (
	"math"
	"strconv"
	"strings"

	"replayd/internal/config"
	"replayd/internal/dataset"
)

// takeTraceReplay translates trace_replay.py's flags.
func (o *Flags) takeTraceReplay(path string) {
	a, t, w := &o.Aliases, &o.Target, &o.Workload
	switch a.backend {
	case "":
	case "vllm", "sglang", "lmdeploy", "openai-chat":
		t.API = "chat"
	case "openai":
		t.API = "completions"
	default:
		o.wrong.Add("--backend", "want vllm, sglang, lmdeploy, openai-chat or openai: "+
			"others do not speak the OpenAI API, got %q", a.backend)
	}
	o.takeAddress()
	switch {
	case path != "" && a.tracePath != "":
		o.wrong.Add("--trace-path", "want it or TRACE, got both, %q and %q", a.tracePath, path)
	case path == "" && a.tracePath == "":
		o.wrong.Add("--trace-path", "want the path of a trace, got none")
	case path == "":
		w.Trace.Path = a.tracePath
	default:
		w.Trace.Path = path
	}
	switch a.traceMode {
	case "trace":
		o.wrong.If(o.given.Changed("dataset-name") || o.given.Changed("dataset-path"),
			"--dataset-name", "needs --trace-mode benchmark")
	case "benchmark":
		format, err := dataset.Named(a.datasetName)
		if err != nil {
			o.fault("--dataset-name", err)
			format = dataset.Bundled
		}
		if format != dataset.Bundled && a.datasetPath == "" {
			o.wrong.Add("--dataset-path", "want the file of %s: nothing is downloaded "+
				"(ShareGPT_V3_unfiltered_cleaned_split.json is at "+
				"huggingface.co/datasets/anon8231489123/ShareGPT_Vicuna_unfiltered); --dataset-name bundled needs none",
				a.datasetName)
			format = dataset.Bundled // one fault is enough
		}
		w.Dataset = config.Dataset{Format: string(format), Path: a.datasetPath}
	default:
		o.wrong.Add("--trace-mode", "want trace or benchmark, got %q", a.traceMode)
	}
}

// takeAddress joins --host and --port.
func (o *Flags) takeAddress() {
	a := &o.Aliases
	for _, flag := range []string{"port", "host"} {
		if o.given.Changed("url") && o.given.Changed(flag) {
			o.wrong.Add("--"+flag, "contradicts --url: want one of them")
			return
		}
	}
	if !o.given.Changed("url") {
		o.Target.URL = "http://" + hostPort(a.host, a.port)
	}
	o.wrong.If(a.port < 1 || a.port > math.MaxUint16, "--port", "want 1 to 65535, got %d", a.port)
}

func hostPort(host string, port int) string {
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
}
