package main

import "math/rand/v2"

// An effect is how the candidate differs for good. Factors: 0 stands for 1.
type effect struct {
	name                 string
	prefill, decode, all float64                                  // times as long
	errors               float64                                  // share of its requests that fail besides
	rare, times          float64                                  // share of its requests that take so many times as long
	seen                 [2]rate                                  // 9eee7a9's judge convicted so many at L1 and L5
	halved               float64                                  // share of its requests with half the TTFT
	faster               func(prompt int, rng *rand.Rand) float64 // factor of a prompt's prefill
}

var effects = []effect{
	{name: "prefill 5 % slower", prefill: 1.05},
	{name: "prefill 10 % slower", prefill: 1.1},
	{name: "prefill 20 % slower", prefill: 1.2},
	{name: "all 20 % slower", all: 1.2},
	{name: "decode 10 % slower", decode: 1.1},
	{name: "1 % more errors", errors: 0.01},
	{name: "2 % of requests 6 times as long", rare: 0.02, times: 6},
	{name: "5 % of requests 3 times as long", rare: 0.05, times: 3},
}

// fasters are candidates that are slower for no request.
var fasters = []effect{
	{name: "prefill in 20 % less time", seen: [2]rate{{67, 500}, {41, 300}}, faster: each(0.8)},
	{name: "prefill in half the time", seen: [2]rate{{236, 500}, {73, 300}}, faster: each(0.5)},
	{name: "prompts below 1,500 tokens in half the time", seen: [2]rate{{485, 500}}, faster: short},
	{name: "80 % of prompts with half the prefill", seen: [2]rate{{326, 500}}, faster: some(0.8, 0.5)},
	{name: "a cache: TTFT halved for 80 %", seen: [2]rate{{40, 40}}, halved: 0.8},
}

func short(prompt int, _ *rand.Rand) float64 {
	if prompt < 1500 {
		return 0.5
	}
	return 1
}

func each(factor float64) func(int, *rand.Rand) float64 {
	return func(int, *rand.Rand) float64 { return factor }
}

func some(share, factor float64) func(int, *rand.Rand) float64 {
	return func(_ int, rng *rand.Rand) float64 {
		if rng.Float64() < share {
			return factor
		}
		return 1
	}
}
