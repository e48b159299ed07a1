package trace

// wekaIDs numbers blocks anew. Ids are local to a session, so that equal ids of two sessions are two blocks; a session's
// sub-agents share its ids.
//
// If the prefix is shared, the first blocks of every session are the same: as many as its tools and system prompt fill, by their
// place. Which of them were equal in production is not recorded, for ids count from 1 in every session. This is what
// kv-cache-tester assumes too. The first blocks of sub-agents of one type are the same in all sessions, as far as the session
// itself does not use them elsewhere.
type wekaIDs struct {
	shared bool
	fresh  uint64
	local  map[uint64]uint64
	global map[uint64]uint64
	prefix map[wekaPlace]uint64
}

// A wekaPlace is a block of a shared prefix.
type wekaPlace struct {
	kind  string // of the sub-agent; "" for a session
	block int
}

func (w *wekaIDs) begin() { clear(w.local) }

// share gives the first blocks of a session or a sub-agent the numbers that all have.
func (w *wekaIDs) share(kind string, ids []uint64) {
	if !w.shared {
		return
	}
	for i, id := range ids {
		if _, known := w.local[id]; known {
			continue
		}
		w.local[id] = numberOf(w.prefix, wekaPlace{kind, i}, &w.fresh)
	}
}

// number numbers the ids of a request in place.
func (w *wekaIDs) number(ids []uint64, global bool) []uint64 {
	numbers := w.local
	if global {
		numbers = w.global
	}
	for i, id := range ids {
		ids[i] = numberOf(numbers, id, &w.fresh)
	}
	return ids
}
