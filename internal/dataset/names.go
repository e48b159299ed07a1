package dataset

import (
	"fmt"
	"slices"
)

// formats are the names that Named accepts as they are.
var formats = []Format{ShareGPT, SingleTurn, MultiTurn, RandomPool, Bundled}

// Named returns the format for a name of replayd's own or of vllm bench serve's --dataset-name
// (vllm/benchmarks/datasets/datasets.py, 2026). The error says why there is no format for the name, and what does the
// same.
func Named(name string) (Format, error) {
	if slices.Contains(formats, Format(name)) {
		return Format(name), nil
	}
	if name == "custom" { // {"prompt": …, "output_tokens": …} a line
		return SingleTurn, nil
	}
	why, known := elsewhere[name]
	if !known {
		return "", fmt.Errorf("dataset: want sharegpt, custom, single_turn, multi_turn, random_pool or bundled, got %q", name)
	}
	return "", fmt.Errorf("dataset %s: %s", name, why)
}

// elsewhere says why vLLM's other names are no dataset here.
var elsewhere = map[string]string{
	"random":            "has no texts: synthetic rows are made of random words, and so are a trace's rows without a dataset",
	"prefix_repetition": "has no texts: synthetic rows with a system prompt, or trace synth, make prompts that share prefixes",
	"sonnet":            "is lines of one poem behind a fixed beginning: synthetic rows with a system prompt are the same load",
	"burstgpt":          "is a trace, with lengths and times: give it as one",
	"timed_trace":       "is a trace, with lengths and times: give it as one, in the format vllm",
	"hf":                "is downloaded by vLLM, and replayd downloads nothing: give a file as custom or sharegpt",
	"spec_bench":        "has a format of its own: a file of its prompts can be given as custom",
	"speed_bench":       "has a format of its own: a file of its prompts can be given as custom",
	"random-mm":         textAlone,
	"custom_image":      textAlone,
	"custom_audio":      textAlone,
	"random-rerank":     "is for reranking, replayd sends completions only",
}

const textAlone = "has images or audio, and replayd sends text"
