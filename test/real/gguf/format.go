package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

var little = binary.LittleEndian

// chatTemplate is Jinja. The space before the content makes its first word one token.
const chatTemplate = "{% for m in messages %}{{ m['role'] + ': ' + (m['content'] | trim) + '\\n' }}{% endfor %}" +
	"{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"

// Numbers of the GGUF format, version 3 (docs/gguf.md in ggml's repository).
const (
	version   = 3
	alignment = 32 // bytes, of the first tensor and of each one after it

	uint32Value  uint32 = 4
	int32Value   uint32 = 5
	float32Value uint32 = 6
	boolValue    uint32 = 7
	stringValue  uint32 = 8
	arrayValue   uint32 = 9

	float32Tensor uint32 = 0
)

// An entry is a key of the file's head with its value: a uint32,
// float32, bool or string, or a slice of int32, float32 or string.
type entry struct {
	key   string
	value any
}

// describe returns the entries that describe the tensors and the tokens to llama.cpp.
func describe(v vocabulary, context int) []entry {
	return []entry{
		{"general.architecture", "llama"},
		{"general.name", "tiny"},
		{"general.file_type", uint32(0)}, // all float32
		{"llama.vocab_size", uint32(len(v.tokens))},
		{"llama.context_length", uint32(context)},
		{"llama.embedding_length", uint32(width)},
		{"llama.block_count", uint32(1)},
		{"llama.feed_forward_length", uint32(feedForward)},
		{"llama.attention.head_count", uint32(1)},
		{"llama.attention.head_count_kv", uint32(1)},
		{"llama.attention.key_length", uint32(headWidth)},
		{"llama.attention.value_length", uint32(headWidth)},
		{"llama.attention.layer_norm_rms_epsilon", float32(1e-5)},
		{"llama.rope.dimension_count", uint32(headWidth)},
		{"llama.rope.freq_base", float32(1e6)},
		{"tokenizer.ggml.model", "llama"},
		{"tokenizer.ggml.pre", "default"},
		{"tokenizer.ggml.tokens", v.tokens},
		{"tokenizer.ggml.scores", v.scores},
		{"tokenizer.ggml.token_type", v.kinds},
		{"tokenizer.ggml.unknown_token_id", uint32(0)},
		{"tokenizer.ggml.bos_token_id", uint32(1)},
		{"tokenizer.ggml.eos_token_id", uint32(2)},
		{"tokenizer.ggml.add_bos_token", false},
		{"tokenizer.ggml.add_eos_token", false},
		{"tokenizer.ggml.add_space_prefix", true},
		{"tokenizer.chat_template", chatTemplate},
	}
}

// encode writes the file: the head, the entries, the positions of the tensors, and the tensors.
func encode(w io.Writer, entries []entry, tensors []tensor) error {
	head := []byte("GGUF")
	head = little.AppendUint32(head, version)
	head = little.AppendUint64(head, uint64(len(tensors)))
	head = little.AppendUint64(head, uint64(len(entries)))
	for _, e := range entries {
		var err error
		if head, err = appendValue(appendString(head, e.key), e.value); err != nil {
			return fmt.Errorf("%s: %w", e.key, err)
		}
	}
	place := uint64(0)
	for _, t := range tensors {
		head = appendString(head, t.name)
		head = little.AppendUint32(head, uint32(len(t.shape)))
		for _, n := range t.shape {
			head = little.AppendUint64(head, n)
		}
		head = little.AppendUint32(head, float32Tensor)
		head = little.AppendUint64(head, place)
		place += aligned(4 * uint64(len(t.data)))
	}
	head = append(head, make([]byte, aligned(uint64(len(head)))-uint64(len(head)))...)
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, t := range tensors {
		data := make([]byte, 0, aligned(4*uint64(len(t.data))))
		for _, x := range t.data {
			data = little.AppendUint32(data, math.Float32bits(x))
		}
		if _, err := w.Write(data[:cap(data)]); err != nil {
			return err
		}
	}
	return nil
}

// appendValue appends the type of a value, for a slice also that of its elements, and the value.
func appendValue(b []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case uint32:
		return little.AppendUint32(little.AppendUint32(b, uint32Value), v), nil
	case float32:
		return little.AppendUint32(little.AppendUint32(b, float32Value), math.Float32bits(v)), nil
	case bool:
		b = little.AppendUint32(b, boolValue)
		if v {
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case string:
		return appendString(little.AppendUint32(b, stringValue), v), nil
	case []int32:
		return appendSlice(b, int32Value, v, func(b []byte, x int32) []byte { return little.AppendUint32(b, uint32(x)) }), nil
	case []float32:
		return appendSlice(b, float32Value, v, func(b []byte, x float32) []byte { return little.AppendUint32(b, math.Float32bits(x)) }), nil
	case []string:
		return appendSlice(b, stringValue, v, appendString), nil
	}
	return nil, fmt.Errorf("no GGUF type for a %T", value)
}

func appendSlice[T any](b []byte, kind uint32, list []T, each func([]byte, T) []byte) []byte {
	b = little.AppendUint32(b, arrayValue)
	b = little.AppendUint32(b, kind)
	b = little.AppendUint64(b, uint64(len(list)))
	for _, x := range list {
		b = each(b, x)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(little.AppendUint64(b, uint64(len(s))), s...)
}

func aligned(n uint64) uint64 { return (n + alignment - 1) / alignment * alignment }
