package chunk

// A meaning is one row of the table of meaning: how this package reads a part of an answer. TestMeanings plays each
// row.
type meaning struct {
	kind   string // of the part
	part   string // its name, or its form
	means  string // what it is taken for
	source string // the API, server or gateway that sends it
}

// Kinds of parts, in the order of the table.
const (
	contents = "content"
	errs     = "error"
	ends     = "finish reason"
	usages   = "usage"
)

// Meanings of parts of the kinds contents and ends.
const (
	isText      = "text"
	isReasoning = "reasoning"
	isCall      = "tool call"
	isTokens    = "tokens without a text"
	endsWell    = "a proper end"
	endsInAbort = "the server gave up: outcome server_abort"
)

// meanings is the table, from which docs/reference/answers.md is made. Everything that is not in it, and is not one of
// the names of ignored, has no meaning: see Chunk.Unread.
var meanings = []meaning{
	{contents, "choices[].text", isText, "OpenAI, completions"},
	{contents, "delta.content", isText, "OpenAI, chat: a text, or a list of parts"},
	{contents, "delta.refusal", isText, "OpenAI, chat"},
	{contents, "content[].text", isText, "OpenAI, a part of type text"},
	{contents, "content[].refusal", isText, "OpenAI, a part of type refusal"},
	{contents, "content[].thinking", isReasoning, "Mistral, a part of type thinking: a text, or a list of parts"},
	{contents, "content[] of another type", isText, "an image, a file or audio"},
	{contents, "delta.reasoning_content", isReasoning, "DeepSeek, SGLang, llama.cpp, vLLM up to 0.11"},
	{contents, "delta.reasoning", isReasoning, "vLLM from 0.12, OpenRouter"},
	{contents, "delta.reasoning_text", isReasoning, "GitHub Copilot"},
	{contents, "delta.reasoning_details[]", isReasoning, "OpenRouter: text, summary or data of an entry"},
	{contents, "delta.thinking_blocks[]", isReasoning, "LiteLLM: thinking or data of an entry"},
	{contents, "delta.tool_calls[].function", isCall, "OpenAI, chat: a name or arguments, a text or an object"},
	{contents, "delta.tool_calls[].custom", isCall, "OpenAI, chat: a name or an input"},
	{contents, "delta.function_call", isCall, "OpenAI, chat, until 2023: a name or arguments"},
	{contents, "delta.audio", isText, "OpenAI, chat: data or a transcript"},
	{contents, "choices[].token_ids, delta.token_ids", isTokens, "vLLM: return_token_ids"},

	{errs, "error", "an error, unless it is empty", "OpenAI; empty ones come with good chunks of some gateways"},
	{errs, "choices[].error", "an error, unless it is empty", "OpenRouter"},
	{errs, `"object": "error", "type": "error"`, "an error", "vLLM, SGLang, LMDeploy, FastChat"},
	{errs, "error_code other than 0", "an error", "FastChat"},
	{errs, "message, detail, errors, error_msg, msg", "an error if there is no choice", "DashScope, FastAPI, Baidu"},
	{errs, "an SSE event of type error", "an error", "Dynamo, with the text in a comment; Anthropic"},
	{errs, "an SSE field error", "an error", "llama.cpp until 2025"},

	{ends, "stop", endsWell, "OpenAI"},
	{ends, "length", endsWell, "OpenAI"},
	{ends, "tool_calls", endsWell, "OpenAI"},
	{ends, "function_call", endsWell, "OpenAI"},
	{ends, "content_filter", endsWell, "OpenAI"},
	{ends, "eos", endsWell, "text servers of before 2024"},
	{ends, "eos_token", endsWell, "TGI"},
	{ends, "stop_sequence", endsWell, "TGI, Anthropic"},
	{ends, "end_turn", endsWell, "Anthropic"},
	{ends, "max_tokens", endsWell, "Anthropic, Gemini"},
	{ends, "tool_use", endsWell, "Anthropic"},
	{ends, "refusal", endsWell, "Anthropic"},
	{ends, "safety", endsWell, "Gemini"},
	{ends, "recitation", endsWell, "Gemini"},
	{ends, "model_length", endsWell, "Mistral"},
	{ends, "model_context_window_exceeded", endsWell, "Anthropic, Zhipu"},
	{ends, "sensitive", endsWell, "Zhipu"},
	{ends, "repetition", endsWell, "vLLM: vllm/v1/engine/__init__.py"},
	{ends, "abort", endsInAbort, "vLLM, SGLang: a shutdown, a sleep, a scale-down"},
	{ends, "error", endsInAbort, "vLLM, OpenRouter, Mistral"},
	{ends, "cancelled", endsInAbort, "TensorRT-LLM"},
	{ends, "timeout", endsInAbort, "TensorRT-LLM"},
	{ends, "insufficient_system_resource", endsInAbort, "DeepSeek"},
	{ends, "network_error", endsInAbort, "Zhipu"},

	{usages, "prompt_tokens, input_tokens", "tokens of the prompt", "OpenAI, chat and responses"},
	{usages, "completion_tokens, output_tokens", "tokens of the answer", "OpenAI, chat and responses"},
	{usages, "total_tokens", "their sum", "OpenAI"},
	{
		usages, "prompt_tokens_details.cached_tokens", "cached tokens of the prompt",
		"OpenAI; input_tokens_details likewise",
	},
	{usages, "cached_tokens", "cached tokens of the prompt", "Kimi"},
	{usages, "prompt_cache_hit_tokens", "cached tokens of the prompt", "DeepSeek"},
	{usages, "cache_read_input_tokens", "cached tokens of the prompt", "Anthropic, LiteLLM"},
	{
		usages, "completion_tokens_details.reasoning_tokens", "tokens of reasoning",
		"OpenAI; output_tokens_details likewise",
	},
	{usages, "reasoning_tokens", "tokens of reasoning", "SGLang"},
	{usages, "choices[].usage", "usage, if the chunk has no other", "Kimi"},
	{usages, "timings", "usage, if there is no other", "llama.cpp: prompt_n, cache_n, predicted_n"},
}
