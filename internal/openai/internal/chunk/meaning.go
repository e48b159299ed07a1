package chunk

import "strings"

// ignored are names in a delta, a message or a choice that say nothing about the answer's tokens, or say it a second
// time. Every other name without a meaning is reported: see Chunk.Unread.
var ignored = map[string]bool{
	"role": true, "name": true, "id": true, "type": true, "index": true, "phase": true, // OpenAI
	"logprobs": true, "annotations": true, "tool_call_id": true, "parsed": true, "obfuscation": true,
	"stop_reason": true, "prompt_token_ids": true, "prompt_logprobs": true, "routed_experts": true, // vLLM
	"matched_stop": true, "hidden_states": true, "sglext": true, "meta_info": true, // SGLang
	"provider_specific_fields": true, "citations": true, "native_finish_reason": true, // LiteLLM, OpenRouter
	"content_filter_results": true, "content_filter_offsets": true, // Azure
	"finish_details": true, "end_turn": true, "seed": true, "context": true, "mm_embedding_handle": true,
}

// Finish reasons that end an answer well, and those that mean that the server gave up. docs/reference/answers.md says
// who sends them.
var (
	goodEnds = []string{
		"stop", "length", "tool_calls", "function_call", "content_filter", "eos", "eos_token", "stop_sequence", "end_turn",
		"max_tokens", "tool_use", "refusal", "safety", "recitation", "model_length", "model_context_window_exceeded",
		"sensitive", "repetition",
	}
	aborted = []string{"abort", "error", "cancelled", "timeout", "insufficient_system_resource", "network_error"}
)

// An end is the meaning of a finish reason.
type end struct {
	name   string
	aborts bool // the server gave up
}

var reasons = func() map[string]end {
	m := map[string]end{}
	for _, name := range goodEnds {
		m[name] = end{name, false}
	}
	for _, name := range aborted {
		m[name] = end{name, true}
	}
	return m
}()

// EndOf returns the name of a finish reason that is known, in any case and with hyphens or underscores, and whether it
// means that the server gave up. The name is "" for a reason that is not known.
func EndOf(reason []byte) (name string, aborts bool) {
	e, known := reasons[string(reason)]
	if !known {
		e = reasons[strings.ReplaceAll(strings.ToLower(string(reason)), "-", "_")]
	}
	return e.name, e.aborts
}
