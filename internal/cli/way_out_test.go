package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The flags that help, and the words of servers from public reports and their sources.
func TestWayOut(t *testing.T) {
	if got := WayOut("HTTP 404: The model `m` does not exist.", "m"); !strings.HasPrefix(got, "bodies") {
		t.Errorf("want no flag where the row names the model, got %q", got)
	}
	run := &cobra.Command{}
	NewFlags().Add(run)
	for _, c := range [][2]string{
		// transformers serve 5.17
		{"--output max", "HTTP 422: Unexpected fields in the request: {'ignore_eos'}"},
		{"--omit-stream-options", "HTTP 422: Unsupported fields in the request: {'stream_options', 'logprobs'}"},
		// pydantic, in vLLM, SGLang, TensorRT-LLM
		{"--output max", `HTTP 400: [{'type': 'extra_forbidden', 'loc': ('body', 'min_tokens'),` +
			` 'msg': 'Extra inputs are not permitted', 'input': 5}]`},
		{"--server", `HTTP 422: [{"loc":["body","max_completion_tokens"],` +
			`"msg":"Extra inputs are not permitted","type":"extra_forbidden"}]`},
		{"--api chat", `HTTP 422: [{"loc":["body","messages"],"msg":"Field required","type":"missing"}]`},
		{"--api completions", `HTTP 422: [{"loc":["body","prompt"],"msg":"Field required","type":"missing"}]`},
		{"--per-chunk-usage=false", `HTTP 422: [{"loc":["body","stream_options","continuous_usage_stats"],` +
			`"msg":"Extra inputs are not permitted"}]`},
		// OpenAI, Azure, Mistral, Groq, LiteLLM
		{"--server openai", "HTTP 400: Unsupported parameter: 'max_tokens' is not supported with this " +
			"model. Use 'max_completion_tokens' instead."},
		{"--omit-stream-options", "HTTP 400: Unrecognized request argument supplied: stream_options"},
		{"--output max", "HTTP 400: property 'ignore_eos' is unsupported"},
		{"--output free", "HTTP 400: litellm.UnsupportedParamsError: azure does not support " +
			"parameters: ['max_tokens']"},
		{"--stream=false", "HTTP 400: This model doesn't currently support streaming"},
		{"--model", "HTTP 404: The model `m` does not exist."},
		{"--model", "HTTP 404: model: want \"sim\", got another"},
		{"--http.config.file", "HTTP 401: Incorrect API key provided"},
		{"--url", "HTTP 404: Not Found"},
		{"--url", "HTTP 405: Method Not Allowed"},
		// vLLM, SGLang, llama.cpp: too long, which names the fields of the lengths
		{"--max-context", "HTTP 400: This model's maximum context length is 4096 tokens. However, " +
			"you requested 5000 tokens"},
		{"--max-context", "HTTP 400: 'max_tokens' is too large: 5000. This model's maximum context " +
			"length is 4096 tokens"},
		{"--max-context", "HTTP 400: the request exceeds the available context size, not supported"},
		{"--api completions", "HTTP 400: As of transformers v4.44, default chat template is no longer allowed"},
		// nothing that a flag gets around
		{"", "HTTP 400: max_tokens must be at least 1, got 0"},
		{"", "HTTP 500: CUDA out of memory"},
		{"", "HTTP 400: no"},
		{"", ""},
	} {
		want, said := c[0], c[1]
		got := WayOut(said, "")
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: want %q, got %q", said, want, got)
		}
		if name, _, _ := strings.Cut(strings.TrimPrefix(got, "--"), " "); got != "" {
			name, _, _ = strings.Cut(strings.TrimSuffix(name, ","), "=")
			if run.Flags().Lookup(name) == nil {
				t.Errorf("%s: there is no flag --%s", said, name)
			}
		}
	}
}
