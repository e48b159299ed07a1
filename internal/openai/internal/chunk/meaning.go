package chunk

import "strings"

// A Meaning is one row of the table of meaning: how this package reads a part of an answer. A test plays each row.
type Meaning struct {
	Kind   string // of the part: one of the Kinds
	Part   string // its name, or its form
	Means  string // what it is taken for
	Source string // the API, server or gateway that sends it
}

// Kinds of parts, in the order of the table.
const (
	Contents = "content"
	Errors   = "error"
	Ends     = "finish reason"
	Usages   = "usage"
)

// Meanings of parts of the kinds Contents and Ends.
const (
	isText      = "text"
	isReasoning = "reasoning"
	isCall      = "tool call"
	isTokens    = "tokens without a text"
	endsWell    = "a proper end"
	endsInAbort = "the server gave up: outcome server_abort"
)

// Meanings is the table. Everything that is not in it, and is not one of the names of ignored, has no meaning: see
// Chunk.Unread.
var Meanings = []Meaning{
	{Contents, "choices[].text", isText, "OpenAI, completions"},
	{Contents, "delta.content", isText, "OpenAI, chat: a text, or a list of parts"},
	{Contents, "delta.refusal", isText, "OpenAI, chat"},
	{Contents, "content[].text", isText, "OpenAI, a part of type text"},
	{Contents, "content[].refusal", isText, "OpenAI, a part of type refusal"},
	{Contents, "content[].thinking", isReasoning, "Mistral, a part of type thinking: a text, or a list of parts"},
	{Contents, "content[] of another type", isText, "an image, a file or audio"},
	{Contents, "delta.reasoning_content", isReasoning, "DeepSeek, SGLang, llama.cpp, vLLM up to 0.11"},
	{Contents, "delta.reasoning", isReasoning, "vLLM from 0.12, OpenRouter"},
	{Contents, "delta.reasoning_text", isReasoning, "GitHub Copilot"},
	{Contents, "delta.reasoning_details[]", isReasoning, "OpenRouter: text, summary or data of an entry"},
	{Contents, "delta.thinking_blocks[]", isReasoning, "LiteLLM: thinking or data of an entry"},
	{Contents, "delta.tool_calls[].function", isCall, "OpenAI, chat: a name or arguments, a text or an object"},
	{Contents, "delta.tool_calls[].custom", isCall, "OpenAI, chat: a name or an input"},
	{Contents, "delta.function_call", isCall, "OpenAI, chat, until 2023: a name or arguments"},
	{Contents, "delta.audio", isText, "OpenAI, chat: data or a transcript"},
	{Contents, "choices[].token_ids, delta.token_ids", isTokens, "vLLM: return_token_ids"},

	{Errors, "error", "an error, unless it is empty", "OpenAI; empty ones come with good chunks of some gateways"},
	{Errors, "choices[].error", "an error, unless it is empty", "OpenRouter"},
	{Errors, `"object": "error", "type": "error"`, "an error", "vLLM, SGLang, LMDeploy, FastChat"},
	{Errors, "error_code other than 0", "an error", "FastChat"},
	{Errors, "message, detail, errors, error_msg, msg", "an error if there is no choice", "DashScope, FastAPI, Baidu"},
	{Errors, "an SSE event of type error", "an error", "Dynamo, with the text in a comment; Anthropic"},
	{Errors, "an SSE field error", "an error", "llama.cpp until 2025"},

	{Ends, "stop", endsWell, "OpenAI"},
	{Ends, "length", endsWell, "OpenAI"},
	{Ends, "tool_calls", endsWell, "OpenAI"},
	{Ends, "function_call", endsWell, "OpenAI"},
	{Ends, "content_filter", endsWell, "OpenAI"},
	{Ends, "eos", endsWell, "text servers of before 2024"},
	{Ends, "eos_token", endsWell, "TGI"},
	{Ends, "stop_sequence", endsWell, "TGI, Anthropic"},
	{Ends, "end_turn", endsWell, "Anthropic"},
	{Ends, "max_tokens", endsWell, "Anthropic, Gemini"},
	{Ends, "tool_use", endsWell, "Anthropic"},
	{Ends, "refusal", endsWell, "Anthropic"},
	{Ends, "safety", endsWell, "Gemini"},
	{Ends, "recitation", endsWell, "Gemini"},
	{Ends, "model_length", endsWell, "Mistral"},
	{Ends, "model_context_window_exceeded", endsWell, "Anthropic, Zhipu"},
	{Ends, "sensitive", endsWell, "Zhipu"},
	{Ends, "repetition", endsWell, "vLLM: vllm/v1/engine/__init__.py"},
	{Ends, "abort", endsInAbort, "vLLM, SGLang: a shutdown, a sleep, a scale-down"},
	{Ends, "error", endsInAbort, "vLLM, OpenRouter, Mistral"},
	{Ends, "cancelled", endsInAbort, "TensorRT-LLM"},
	{Ends, "timeout", endsInAbort, "TensorRT-LLM"},
	{Ends, "insufficient_system_resource", endsInAbort, "DeepSeek"},
	{Ends, "network_error", endsInAbort, "Zhipu"},

	{Usages, "prompt_tokens, input_tokens", "tokens of the prompt", "OpenAI, chat and responses"},
	{Usages, "completion_tokens, output_tokens", "tokens of the answer", "OpenAI, chat and responses"},
	{Usages, "total_tokens", "their sum", "OpenAI"},
	{
		Usages, "prompt_tokens_details.cached_tokens", "cached tokens of the prompt",
		"OpenAI; input_tokens_details likewise",
	},
	{Usages, "cached_tokens", "cached tokens of the prompt", "Kimi"},
	{Usages, "prompt_cache_hit_tokens", "cached tokens of the prompt", "DeepSeek"},
	{Usages, "cache_read_input_tokens", "cached tokens of the prompt", "Anthropic, LiteLLM"},
	{
		Usages, "completion_tokens_details.reasoning_tokens", "tokens of reasoning",
		"OpenAI; output_tokens_details likewise",
	},
	{Usages, "reasoning_tokens", "tokens of reasoning", "SGLang"},
	{Usages, "choices[].usage", "usage, if the chunk has no other", "Kimi"},
	{Usages, "timings", "usage, if there is no other", "llama.cpp: prompt_n, cache_n, predicted_n"},
}

// ignored are names in a delta, a message or a choice that say nothing about the answer's tokens, or say it a second
// time.
var ignored = map[string]bool{
	"role": true, "name": true, "id": true, "type": true, "index": true, "phase": true, // OpenAI
	"logprobs": true, "annotations": true, "tool_call_id": true, "parsed": true, "obfuscation": true,
	"stop_reason": true, "prompt_token_ids": true, "prompt_logprobs": true, "routed_experts": true, // vLLM
	"matched_stop": true, "hidden_states": true, "sglext": true, "meta_info": true, // SGLang
	"provider_specific_fields": true, "citations": true, "native_finish_reason": true, // LiteLLM, OpenRouter
	"content_filter_results": true, "content_filter_offsets": true, // Azure
	"finish_details": true, "end_turn": true, "seed": true, "context": true, "mm_embedding_handle": true,
}

// An end is the meaning of a finish reason.
type end struct {
	name   string
	aborts bool // the server gave up
}

var reasons = func() map[string]end {
	m := map[string]end{}
	for _, row := range Meanings {
		if row.Kind == Ends {
			m[row.Part] = end{row.Part, row.Means == endsInAbort}
		}
	}
	return m
}()

// EndOf returns the name of a finish reason in the table, in any case and with hyphens or underscores, and whether it
// means that the server gave up. The name is "" for a reason that is not in the table.
func EndOf(reason []byte) (name string, aborts bool) {
	e, known := reasons[string(reason)]
	if !known {
		e = reasons[strings.ReplaceAll(strings.ToLower(string(reason)), "-", "_")]
	}
	return e.name, e.aborts
}
