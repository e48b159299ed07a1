package synth

import _ "embed"

// Sample is the bundled trace, in Mooncake's format: what its generator in shape_test.go makes of a seed.
//
//go:embed sample.jsonl
var Sample []byte
