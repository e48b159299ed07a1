package analysis

import (
	"testing"

	"replayd/internal/trace"

	"github.com/google/go-cmp/cmp"
)

// Two sub-agents run beside each other, and the last row of the first session waits for both. The second session shares the
// first block.
const twoSessions = `{"schema":"replayd.sessions.v1","block_size":16}
{"timestamp":0,"input_length":32,"hash_ids":[1,2],"session_id":"s","after":[]}
{"timestamp":100,"input_length":33,"hash_ids":[1,3],"session_id":"u","after":[]}
{"input_length":16,"hash_ids":[8],"session_id":"s","agent_id":"a","after":[{"row":0,"wait":1000}]}
{"input_length":20,"hash_ids":[8,9],"session_id":"s","agent_id":"b","after":[{"row":0,"wait":2000}]}
{"input_length":32,"hash_ids":[8,7],"session_id":"s","agent_id":"a","after":[{"row":2,"wait":1000}]}
{"input_length":48,"hash_ids":[1,2,4],"session_id":"s","after":[{"row":0,"wait":5000},{"row":3},{"row":4,"wait":500}]}
`

func TestGraphAndReuse(t *testing.T) {
	a := analyze(t, openFile(t, twoSessions, trace.Options{}))
	g := a.Graph
	if g.Parents != 6 || g.Joins != 1 || g.Forks != 1 || g.Parallel != 2 || g.Agents.Sum != 2 || g.Depth.Max != 4 || g.Depth.Min != 1 {
		t.Errorf("got %+v", g)
	}
	if g.Waits.Count != 6 || g.Waits.Max != 5 || g.Waits.Min != 0 {
		t.Errorf("waits: got %+v", g.Waits)
	}
	// Row 1 hits block 1 of the other session. Rows 3 and 4 hit block 8, row 5 hits blocks 1 and 2, all of their own session.
	if diff := cmp.Diff(Reuse{WithinBlocks: 4, WithinTokens: 64, AcrossBlocks: 1, AcrossTokens: 16}, a.Reuse); diff != "" {
		t.Error(diff)
	}
	if a.Reuse.WithinTokens+a.Reuse.AcrossTokens != a.Stats.Prefix.HitTokens {
		t.Errorf("want all %d tokens of hits, got %+v", a.Stats.Prefix.HitTokens, a.Reuse)
	}
}
