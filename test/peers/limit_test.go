//go:build peers

package peers_test

import (
	"os"
	"testing"
	"time"
)

// The first 300 s of the conversation trace have 918 rows, 82 of them longer than 32,768 tokens. A server with that
// limit refuses those, and one line says so.
func TestRowsOverTheServersLimit(t *testing.T) {
	t.Parallel()
	if os.Getenv("REPLAYD_TRACES") == "" {
		t.Skip("REPLAYD_TRACES is not set: the figures are those of Mooncake's conversation trace")
	}
	dir := t.TempDir()
	conversation("conversation_trace.jsonl", 400*time.Second)(t, dir, "")
	e := start(t, dir, append([]string{"--model", "m", "--max-model-len", "32768"}, fast...)...)
	s := shell(t, dir, e.address, "replayd run --model m --trace-path conversation_trace.jsonl --to 300s --speed 20 --url $ENDPOINT_URL")
	well(t, s)
	s.all = e.received(t)
	rows := fileRows(t, dir, "conversation_trace.jsonl")[:918]
	refused := map[bool]int{}
	for i, r := range byRow(t, s.all) {
		if i < len(rows) && (r.Outcome == "ok") != (rows[i].Input < 32768) {
			t.Errorf("row %d of %d tokens: got %s", i, rows[i].Input, r.Outcome)
		}
		refused[r.Outcome == "refused" && r.Status == 400]++
	}
	if len(s.all) != 918 || refused[false] != 836 || refused[true] != 82 {
		t.Errorf("want 918 requests, 836 ok and 82 refused, the engine saw %d, %d and %d", len(s.all), refused[false], refused[true])
	}
	s.says(t, "Success Rate: 91.06% (918 sent, 836 ok, 82 refused: 82× HTTP 400: prompt: want at most 32767 tokens")
	s.agrees(t, dir)
	s.recomputed(t, dir)
}
