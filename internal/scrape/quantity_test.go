package scrape

import "testing"

// What cannot be, what is said twice, and the names and queues that servers around an engine add.
func TestReadBeyondOneEngine(t *testing.T) {
	readAll(t, []readCase{
		{"no impossible value", nil, []string{
			`vllm:num_requests_running{engine="0"} 1`, `vllm:kv_cache_usage_perc{engine="0"} 41.7`, `vllm:num_requests_waiting{engine="0"} -1`,
			`vllm:kv_cache_usage_perc{engine="1"} 0.5`, `vllm:prompt_tokens_total{engine="0"} +Inf`,
		}, []string{`requests_running{rank="0"} 1`, `kv_cache_usage_ratio{rank="1"} 0.5`}},
		{"no histogram without a sum", nil, []string{
			`vllm:num_requests_running{engine="0"} 1`, `vllm:inter_token_latency_seconds_bucket{engine="0",le="0.1"} 5`,
			`vllm:inter_token_latency_seconds_bucket{engine="0",le="+Inf"} 6`, `vllm:inter_token_latency_seconds_count{engine="0"} 6`,
		}, []string{`requests_running{rank="0"} 1`}},
		{"the queues of a decode engine", nil, []string{ // sgl-project/sglang#13203
			`sglang:num_queue_reqs{tp_rank="0"} 0`, `sglang:num_decode_prealloc_queue_reqs{tp_rank="0"} 12`, `sglang:num_decode_transfer_queue_reqs{tp_rank="0"} 5`,
		}, []string{`requests_waiting{rank=""} 17`}},
		{"the queues of a prefill engine", nil, []string{
			`sglang:num_queue_reqs{tp_rank="0"} 2`, `sglang:num_prefill_bootstrap_queue_reqs{tp_rank="0"} 3`, `sglang:num_prefill_inflight_queue_reqs{tp_rank="0"} 9`,
		}, []string{`requests_waiting{rank=""} 5`}},
		{"Ray's names", nil, []string{ // ray-project/ray#52719
			`ray_vllm:num_requests_waiting{engine="0",WorkerId="a"} 3`, `ray_vllm:generation_tokens_total{engine="0",WorkerId="a"} 30`,
		}, []string{`requests_waiting{rank="0"} 3`, `generation_tokens{rank="0"} 30`}},
		{"newer Ray's names", nil, []string{
			`ray_vllm_num_requests_waiting{engine="0",WorkerId="a"} 3`, `ray_vllm_time_to_first_token_seconds_bucket{engine="0",le="1"} 1`,
			`ray_vllm_time_to_first_token_seconds_bucket{engine="0",le="+Inf"} 1`, `ray_vllm_time_to_first_token_seconds_sum{engine="0"} 0.5`,
			`ray_vllm_time_to_first_token_seconds_count{engine="0"} 1`, `ray_serve_num_requests 7`,
		}, []string{`requests_waiting{rank="0"} 3`, `ttft_seconds{rank="0"} count 1 sum 0.5 1:1`}},
		{"KServe's names", nil, []string{`kserve_vllm:num_requests_waiting{engine="0"} 3`}, []string{`requests_waiting{rank="0"} 3`}},
		{"names with and without a wrapper's prefix", nil, []string{
			`ray_vllm:num_requests_waiting{engine="0"} 3`, `vllm:num_requests_waiting{engine="0"} 4`,
		}, []string{`requests_waiting{rank="0"} 4`}},
		{"an aggregate beside its ranks", nil, []string{
			`vllm:num_requests_waiting{engine="0"} 3`, `vllm:num_requests_waiting{engine="1"} 4`, `vllm:num_requests_waiting 7`,
		}, []string{`requests_waiting{rank="0"} 3`, `requests_waiting{rank="1"} 4`}},
		{"a gauge of several processes", nil, []string{
			`vllm:num_requests_waiting{engine="0",pid="7"} 3`, `vllm:num_requests_waiting{engine="0",pid="8"} 4`, `vllm:num_requests_waiting{engine="0",pid="9",model_name="b"} 1`,
			`vllm:generation_tokens_total{engine="0",pid="7"} 30`, `vllm:generation_tokens_total{engine="0",pid="8"} 40`,
		}, []string{`requests_waiting{rank="0"} 5`, `generation_tokens{rank="0"} 70`}},
		{"a cache outside the engine", nil, []string{
			`vllm:prefix_cache_queries_total{engine="0"} 100`, `vllm:prefix_cache_hits_total{engine="0"} 10`,
			`vllm:external_prefix_cache_queries_total{engine="0"} 90`, `vllm:external_prefix_cache_hits_total{engine="0"} 60`,
		}, []string{
			`prefix_cache_queries_tokens{rank="0"} 100`, `prefix_cache_hits_tokens{rank="0"} 10`,
			`external_prefix_cache_queries_tokens{rank="0"} 90`, `external_prefix_cache_hits_tokens{rank="0"} 60`,
		}},
		{"speculative decoding", nil, []string{
			`trtllm_num_requests_running 1`, `trtllm_spec_decode_drafted_tokens_total 40`, `trtllm_spec_decode_accepted_tokens_total 30`,
		}, []string{`requests_running{rank=""} 1`, `speculative_drafted_tokens{rank=""} 40`, `speculative_accepted_tokens{rank=""} 30`}},
	})
}
