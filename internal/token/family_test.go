package token

import "testing"

func TestFamily(t *testing.T) {
	for name, want := range map[string]string{
		"Qwen/Qwen3-0.6B": "main", "qwen3-0.6b": "main", "Qwen/Qwen3-Coder-30B-A3B-Instruct": "main", "qwen3": "main",
		"Qwen/Qwen2.5-7B-Instruct": "main", "Qwen/QwQ-32B": "main", "/models/Qwen3-0.6B/": "main",
		"meta-llama/Llama-3.1-8B-Instruct": "main", "meta-llama/Meta-Llama-3-8B": "main", "Llama-3.3-70B": "main", "llama3": "main", "llama3.2-1b": "main",
		"openai/gpt-oss-20b": "main", "gpt-oss-120b": "main", "gpt-4o": "main", "gpt-4o-mini": "main", "gpt-4": "main", "o200k_base": "main", "cl100k_base": "main",
		"google/gemma-3-4b-it": "main", "gemma3": "main", "microsoft/phi-4": "main",
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": "main", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B": "main",
		"deepseek-ai/DeepSeek-R1-0528-Qwen3-8B": "main",
		"deepseek-ai/DeepSeek-V3":               "all", "deepseek-ai/DeepSeek-V3.1": "all", "deepseek-ai/DeepSeek-R1": "all", "deepseek-r1-0528": "all",
		"mistralai/Mistral-7B-Instruct-v0.3": "all", "mistralai/Mistral-Nemo-Instruct-2407": "all", "mistralai/Mixtral-8x7B-v0.1": "all",
		"mistralai/Mistral-Small-3.1-24B-Instruct-2503": "all",
		"qwen3:0.6b": "main", "llama3.1:8b": "main", "nvidia/Llama-3_3-Nemotron-Super-49B-v1": "main", "deepseek-r1:1.5b": "all", // "all" also holds for the vocabularies of "main"
		// Other vocabularies, and unknown ones.
		"Qwen/Qwen3.5-27B": "", "Qwen/Qwen-7B": "", "meta-llama/Llama-2-7b-hf": "", "meta-llama/Llama-4-Scout": "", "google/gemma-2-9b": "",
		"google/gemma-3n-E2B": "", "deepseek-ai/deepseek-llm-7b": "", "gpt2": "", "my-model": "", "": "", "notqwen3": "", "microsoft/Phi-4-mini-instruct": "", "mistralai/Mistral-Large-3": "", "qwen30": "", "deepseek-v4": "",
	} {
		list, ok := Family(name)
		if list != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t; want %q", name, list, ok, want)
		}
		if ok {
			if _, err := List(list); err != nil {
				t.Error(err)
			}
		}
	}
}
