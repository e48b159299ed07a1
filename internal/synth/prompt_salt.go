package synth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"replayd/internal/trace"
)

// A Salt determines which rows share the texts of their blocks. If loops share them, a loop hits the prefix cache entries of
// earlier loops. Beside the constants there is "fixed:NAME": all loops that use the name share it.
type Salt string

// Salts.
const (
	SaltLoop    Salt = "loop"    // each loop of each workload has texts of its own
	SaltSession Salt = "session" // as loop, and within it each session, and each row without one, has texts of its own
	SaltNone    Salt = "none"    // all loops share
)

const saltFixed = "fixed:"

// Check returns why a salt is invalid.
func (s Salt) Check() error {
	if name, ok := strings.CutPrefix(string(s), saltFixed); s == SaltLoop || s == SaltSession || s == SaltNone || ok && name != "" {
		return nil
	}
	return fmt.Errorf("want loop, session, none or fixed:NAME, got %q", string(s))
}

// At is the salt's value for a row in the loop of a workload that starts at an instant. Only "session" reads the row. For "loop"
// and "session" only whole Unix seconds of the instant count: the shards of one replay share the value, whatever their clocks' fractions. The pass says which time
// the trace comes round within that loop, from 0, and each one is a loop of its own. A salt that does not pass
// Check is taken as "loop".
func (s Salt) At(workload string, loopStart time.Time, pass int64, r *trace.Record) uint64 {
	if s == SaltNone {
		return 0
	}
	sum := sha256.Sum256([]byte(s.source(workload, loopStart, pass, r)))
	return binary.BigEndian.Uint64(sum[:])
}

// Text is the salt as an engine's cache_salt, which tells loops apart as At does: 256 bits in 43 characters, as vLLM wants
// them (vllm-project/vllm:vllm/entrypoints/openai/chat_completion/protocol.py). It is "" for "none".
func (s Salt) Text(workload string, loopStart time.Time, pass int64, r *trace.Record) string {
	if s == SaltNone {
		return ""
	}
	sum := sha256.Sum256([]byte("cache\x00" + s.source(workload, loopStart, pass, r)))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// source returns the text whose hash is the value.
func (s Salt) source(workload string, loopStart time.Time, pass int64, r *trace.Record) string {
	if name, ok := strings.CutPrefix(string(s), saltFixed); ok {
		return "fixed\x00" + name
	}
	loop := "loop\x00" + workload + "\x00" + strconv.FormatInt(loopStart.Unix(), 10)
	if pass != 0 {
		loop += "\x00" + strconv.FormatInt(pass, 10)
	}
	switch {
	case s != SaltSession:
		return loop
	case r.Session != "":
		return "session\x00" + r.Session + "\x00" + loop
	}
	return "row\x00" + strconv.Itoa(r.Number) + "\x00" + loop
}

// SessionID returns the id of a row's session in a pass of a loop, 16 hexadecimal digits. A row without a session has
// an id of its own. Each loop has other ids, whatever the salt of the texts: for a router its sessions are new
// conversations. The shards of one replay, a replay that was restarted and both sides of a comparison compute the
// same ids.
func SessionID(workload string, seed uint64, loopStart time.Time, pass int64, r *trace.Record) string {
	source := SaltSession.source(workload, loopStart, pass, r)
	sum := sha256.Sum256([]byte("id\x00" + strconv.FormatUint(seed, 10) + "\x00" + source))
	return hex.EncodeToString(sum[:8])
}
