package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"replayd/internal/config"
	"replayd/internal/dataset"
)

// takeTraceReplay translates trace_replay.py's flags.
func (o *Flags) takeTraceReplay(path string, given *pflag.FlagSet, fault faults) {
	a, t, w := &o.Aliases, &o.Target, &o.Workload
	switch a.backend {
	case "", "vllm", "sglang", "lmdeploy", "openai-chat":
		t.API = "chat"
	case "openai":
		t.API = "completions"
	default:
		fault("--backend", fmt.Errorf("want vllm, sglang, lmdeploy, openai-chat or openai: others do not speak the OpenAI API, got %q", a.backend))
	}
	if given.Changed("url") && (given.Changed("host") || given.Changed("port")) {
		fault("--host", errors.New("contradicts --url: want one of them"))
	} else if !given.Changed("url") {
		t.URL = "http://" + hostPort(a.host, a.port)
	}
	if a.port < 1 || a.port > math.MaxUint16 {
		fault("--port", fmt.Errorf("want 1 to 65535, got %d", a.port))
	}
	switch {
	case path != "" && a.tracePath != "":
		fault("--trace-path", fmt.Errorf("want it or TRACE, got both, %q and %q", a.tracePath, path))
	case path == "" && a.tracePath == "":
		fault("--trace-path", errors.New("want the path of a trace, got none"))
	case path == "":
		w.Trace.Path = a.tracePath
	default:
		w.Trace.Path = path
	}
	switch a.traceMode {
	case "trace":
		if given.Changed("dataset-name") || given.Changed("dataset-path") {
			fault("--dataset-name", errors.New("needs --trace-mode benchmark"))
		}
	case "benchmark":
		format, err := dataset.Named(a.datasetName)
		if err != nil {
			fault("--dataset-name", err)
			format = dataset.Bundled
		}
		if format != dataset.Bundled && a.datasetPath == "" {
			fault("--dataset-path", fmt.Errorf("want the file of %s: nothing is downloaded (ShareGPT_V3_unfiltered_cleaned_split.json is at huggingface.co/datasets/anon8231489123/ShareGPT_Vicuna_unfiltered); --dataset-name bundled needs none", a.datasetName))
			format = dataset.Bundled // one fault is enough
		}
		w.Dataset = config.Dataset{Format: string(format), Path: a.datasetPath}
	default:
		fault("--trace-mode", fmt.Errorf("want trace or benchmark, got %q", a.traceMode))
	}
}

func hostPort(host string, port int) string {
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
}
