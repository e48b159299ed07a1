package synth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Salt determines which loops share the texts of their blocks. If loops share them, a loop hits the prefix cache entries of
// earlier loops. Beside the two constants there is "fixed:NAME": all loops that use the name share it.
type Salt string

// Salts.
const (
	SaltLoop Salt = "loop" // each loop of each workload has texts of its own
	SaltNone Salt = "none" // all loops share
)

const saltFixed = "fixed:"

// Check returns why a salt is invalid.
func (s Salt) Check() error {
	if name, ok := strings.CutPrefix(string(s), saltFixed); s == SaltLoop || s == SaltNone || ok && name != "" {
		return nil
	}
	return fmt.Errorf("want loop, none or fixed:NAME, got %q", string(s))
}

// At is the salt's value in the loop of a workload that starts at an instant. For "loop" only whole Unix seconds
// of it count: the shards of one replay share the value, whatever their clocks' fractions. The pass says which time
// the trace comes round within that loop, from 0, and for "loop" each one is a loop of its own. A salt that does not pass
// Check is taken as "loop".
func (s Salt) At(workload string, loopStart time.Time, pass int64) uint64 {
	if s == SaltNone {
		return 0
	}
	sum := sha256.Sum256([]byte(s.source(workload, loopStart, pass)))
	return binary.BigEndian.Uint64(sum[:])
}

// Text is the salt as an engine's cache_salt, which tells loops apart as At does: 256 bits in 43 characters, as vLLM wants
// them (vllm-project/vllm:vllm/entrypoints/openai/chat_completion/protocol.py). It is "" for "none".
func (s Salt) Text(workload string, loopStart time.Time, pass int64) string {
	if s == SaltNone {
		return ""
	}
	sum := sha256.Sum256([]byte("cache\x00" + s.source(workload, loopStart, pass)))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// source returns the text whose hash is the value.
func (s Salt) source(workload string, loopStart time.Time, pass int64) string {
	if name, ok := strings.CutPrefix(string(s), saltFixed); ok {
		return "fixed\x00" + name
	}
	loop := "loop\x00" + workload + "\x00" + strconv.FormatInt(loopStart.Unix(), 10)
	if pass != 0 {
		loop += "\x00" + strconv.FormatInt(pass, 10)
	}
	return loop
}
