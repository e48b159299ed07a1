package synth

import _ "embed"

// Sample is the bundled trace, in Mooncake's format: what Demo makes of the seed SampleSeed.
//
//go:embed sample.jsonl
var Sample []byte

// SampleSeed is the seed of Sample.
const SampleSeed = 1
