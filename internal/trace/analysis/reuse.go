package analysis

import "replayd/internal/trace/prefix"

// Reuse divides the hits of a cache that never forgets: blocks that the same session had before, and blocks that only other rows
// had. Rows without a session hit only other rows.
type Reuse struct {
	WithinBlocks, WithinTokens int64
	AcrossBlocks, AcrossTokens int64
}

// reuse knows which sessions have had each prefix. Nearly every prefix belongs to one session, which is stored with it; only
// further sessions need a map.
type reuse struct {
	sessions map[string]uint32 // by id, from 1
	first    []uint32          // by node
	more     map[holder]struct{}
	Reuse
}

// A holder is a session that has had a prefix.
type holder struct{ node, session uint32 }

// add adds a row with its steps in the tree of all prefixes. nodes is how many prefixes the tree has.
func (u *reuse) add(session string, row []prefix.Step, nodes int) {
	for len(u.first) < nodes {
		u.first = prefix.Push(u.first, 0)
	}
	own := uint32(0)
	if session != "" {
		if own = u.sessions[session]; own == 0 {
			own = uint32(len(u.sessions) + 1)
			u.sessions[session] = own
		}
	}
	hit := true
	for _, s := range row {
		hit = hit && s.Known > 0
		within := own > 0 && u.had(s.Node, own)
		switch {
		case hit && within:
			u.WithinBlocks++
			u.WithinTokens += int64(s.Known)
		case hit:
			u.AcrossBlocks++
			u.AcrossTokens += int64(s.Known)
		}
	}
}

// had reports whether the session has had the prefix before, and notes that it has it now.
func (u *reuse) had(node, session uint32) bool {
	switch u.first[node] {
	case 0:
		u.first[node] = session
		return false
	case session:
		return true
	}
	h := holder{node, session}
	_, known := u.more[h]
	u.more[h] = struct{}{}
	return known
}
