package cli

import "replayd/internal/sim"

// Sim returns the flags of sim. Their keys are fields of sim.Options.
func Sim(o *sim.Options, listen, log *string) Table {
	return Table{
		{"Server", "", []Row{
			{"web.listen-address", "", listen, "address of the API, host:port"},
			{"log", "Log", log, "file to append a JSON line per request to"},
			{"log-chunks", "LogChunks", &o.LogChunks, "log the time before each chunk's write"},
		}},
		{"Engine", "", []Row{
			{"model", "Model", &o.Model, "name of the model"},
			{"lora", "Adapters", &o.Adapters, "LoRA adapters in /v1/models"},
			{"slots", "Slots", &o.Slots, "requests in prefill and decode at once"},
			{"max-model-len", "MaxModelLen", &o.MaxModelLen, "most tokens of a prompt and its output"},
			{"template-tokens", "TemplateTokens", &o.TemplateTokens, "tokens of the chat template"},
			{"cache-tokens", "CacheTokens", &o.CacheTokens, "tokens in the KV cache; 0: no prefix cache"},
			{"block-tokens", "BlockTokens", &o.BlockTokens, "tokens in a block of the prefix cache"},
			{"seed", "Seed", &o.Seed, "seed of faults, noise, words and lengths"},
		}},
		{"Speed", "", []Row{
			{"prefill-rate", "PrefillRate", &o.PrefillRate, "prompt tokens per second"},
			{"decode-rate", "DecodeRate", &o.DecodeRate, "output tokens per second of a single stream"},
			{"batch-cost", "BatchCost", &o.BatchCost, "relative time that each further stream adds to a token"},
			{"preempt-cost", "PreemptCost", &o.PreemptCost, "relative time added to a token at twice --cache-tokens in use"},
			{"ttft", "TTFT", &o.TTFT, "fixed prefill time, such as 200ms; 0: by --prefill-rate"},
			{"itl", "ITL", &o.ITL, "fixed time of a further token, such as 20ms; 0: by --decode-rate"},
			{"step-tokens", "StepTokens", &o.StepTokens, "shared steps of at most so many tokens; 0: prompts one at a time"},
			{"reasoning-tokens", "ReasoningTokens", &o.ReasoningTokens, "tokens of reasoning before the text of each chat " +
				"answer"},
			{"chunk-tokens", "ChunkTokens", &o.ChunkTokens, "tokens in each chunk after the first"},
			{"buffer", "Buffer", &o.Buffer, "send answers 4 KiB at a time, as a proxy does that buffers"},
		}},
		{"Noise, by --seed and request id", "", []Row{
			{"jitter", "Jitter", &o.Jitter, "standard deviation of ln(time) of prefill and decode, such as 0.1"},
			{"slow-share", "SlowShare", &o.SlowShare, "share of requests that are slow"},
			{"slow-factor", "SlowFactor", &o.SlowFactor, "how many times as long slow requests take"},
		}},
		{"Faults, as shares of all requests, at most 1 together", "Faults", []Row{
			{"fault-500", "Error500", &o.Faults.Error500, "answered with status 500"},
			{"fault-429", "Error429", &o.Faults.Error429, "answered with status 429"},
			{"fault-cut", "Cut", &o.Faults.Cut, "cut in the middle of the answer"},
			{"fault-garbled", "Garbled", &o.Faults.Garbled, "with a data line that is not JSON"},
			{"fault-empty", "Empty", &o.Faults.Empty, "ended without content"},
			{"fault-stalled", "Stalled", &o.Faults.Stalled, "stopped in the middle, with the connection open"},
			{"fault-error-event", "ErrorEvent", &o.Faults.ErrorEvent, "with an error event in the stream"},
			{"fault-abort", "Abort", &o.Faults.Abort, "ended in the middle with finish reason abort"},
		}},
		{"", "", []Row{{"--fault-*", "Faults", nil, ""}}},
	}
}
