package synth

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"replayd/internal/trace"
)

// SessionID returns the id of a row's session in a pass of a loop, 16 hexadecimal digits. A row without a session has an id of its
// own. Each loop has other ids, whatever the salt of the texts: for a router its sessions are new conversations. The shards of one
// replay, a replay that was restarted and both sides of a comparison compute the same ids.
func SessionID(workload string, seed uint64, loopStart time.Time, pass int64, r *trace.Record) string {
	source := SaltSession.source(workload, loopStart, pass, r)
	sum := sha256.Sum256([]byte("id\x00" + strconv.FormatUint(seed, 10) + "\x00" + source))
	return hex.EncodeToString(sum[:8])
}
