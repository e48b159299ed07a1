package synth

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Salt says which loops share the text of their blocks. Where they do, the engine's prefix cache answers a loop
// from the one before. Beside the two constants there is "fixed:NAME": all loops that use the name share it.
type Salt string

// Salts.
const (
	SaltLoop Salt = "loop" // each loop of each workload has texts of its own
	SaltNone Salt = "none" // all loops share
)

const saltFixed = "fixed:"

// Check says what is wrong with a salt.
func (s Salt) Check() error {
	if name, ok := strings.CutPrefix(string(s), saltFixed); s == SaltLoop || s == SaltNone || ok && name != "" {
		return nil
	}
	return fmt.Errorf("want loop, none or fixed:NAME, got %q", string(s))
}

// At is the salt's value in the loop of a workload that starts at an instant. For "loop" only whole Unix seconds
// of it count: the shards of one replay share the value, whatever their clocks' fractions. A salt that does not pass
// Check is taken as "loop".
func (s Salt) At(workload string, loopStart time.Time) uint64 {
	switch name, ok := strings.CutPrefix(string(s), saltFixed); {
	case s == SaltNone:
		return 0
	case ok:
		return hash("fixed\x00" + name)
	default:
		return hash("loop\x00" + workload + "\x00" + strconv.FormatInt(loopStart.Unix(), 10))
	}
}

func hash(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.BigEndian.Uint64(sum[:])
}
