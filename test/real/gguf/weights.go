package main

import (
	"math"
	"math/rand/v2"
)

// The sizes of the model: one layer of one head, the least that llama.cpp's llama architecture accepts.
const (
	width       = 64 // of an embedding
	headWidth   = 16
	feedForward = 128
)

// The first value of every embedding is a constant that the layer does not change. The output matrix gives it a weight
// of −20 for every token that is not a word. The logit of that token is then about 100 below those of the words, so the
// token is never sampled.
const (
	constant     = 4
	neverSampled = -20
)

// A tensor is a float32 tensor with its shape in GGUF's order: the length of a row first.
type tensor struct {
	name  string
	shape []uint64
	data  []float32
}

// weights makes the model's tensors, in the order of the file.
func weights(v vocabulary) []tensor {
	random := rand.New(rand.NewPCG(1, 1))
	matrix := func(name string, rows, columns int, scale float64) tensor {
		t := tensor{name, []uint64{uint64(columns), uint64(rows)}, make([]float32, rows*columns)}
		for i := range t.data {
			t.data[i] = float32(random.NormFloat64() * scale)
		}
		return t
	}
	ones := func(name string) tensor {
		t := tensor{name, []uint64{width}, make([]float32, width)}
		for i := range t.data {
			t.data[i] = 1
		}
		return t
	}
	first := func(t tensor, value func(row int) float32) tensor { // sets the first value of each row
		for row := range int(t.shape[1]) {
			t.data[row*width] = value(row)
		}
		return t
	}
	silent := func(t tensor) tensor { // row 0 feeds the first value of the embedding and adds nothing
		clear(t.data[:t.shape[0]])
		return t
	}
	scale := 1 / math.Sqrt(width)
	tokens := len(v.tokens)
	return []tensor{
		first(matrix("token_embd.weight", tokens, width, 0.5), func(int) float32 { return constant }),
		first(matrix("output.weight", tokens, width, 0.2), func(token int) float32 {
			if token < v.words {
				return neverSampled
			}
			return 0
		}),
		ones("output_norm.weight"),
		ones("blk.0.attn_norm.weight"),
		matrix("blk.0.attn_q.weight", headWidth, width, scale),
		matrix("blk.0.attn_k.weight", headWidth, width, scale),
		matrix("blk.0.attn_v.weight", headWidth, width, scale),
		silent(matrix("blk.0.attn_output.weight", width, headWidth, scale/2)),
		ones("blk.0.ffn_norm.weight"),
		matrix("blk.0.ffn_gate.weight", feedForward, width, scale),
		matrix("blk.0.ffn_up.weight", feedForward, width, scale),
		silent(matrix("blk.0.ffn_down.weight", width, feedForward, scale/2)),
	}
}
