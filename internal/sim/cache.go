package sim

import (
	"container/list"
	"slices"
)

// cache is a prefix cache of whole blocks. The key of a block stands for the block and everything before it. The least
// recently used block is evicted first. A request uses its blocks from the last to the first, so a block is always used
// later than the blocks that continue it, and no block is stored without the block before it. Its batch locks it.
type cache struct {
	room   int // in blocks
	at     map[uint64]*list.Element
	blocks list.List // of keys, the latest used first
}

func newCache(room int) *cache { return &cache{room: room, at: map[uint64]*list.Element{}} }

// lookup counts the leading keys that are stored, and uses them.
func (c *cache) lookup(keys []uint64) int {
	hit := 0
	for hit < len(keys) && c.at[keys[hit]] != nil {
		hit++
	}
	c.use(keys[:hit])
	return hit
}

// store uses all keys. New keys evict the least recently used blocks.
func (c *cache) store(keys []uint64) {
	c.use(keys[:min(len(keys), c.room)])
}

func (c *cache) use(keys []uint64) {
	for _, key := range slices.Backward(keys) {
		if block := c.at[key]; block != nil {
			c.blocks.MoveToFront(block)
			continue
		}
		if c.blocks.Len() >= c.room {
			delete(c.at, c.blocks.Remove(c.blocks.Back()).(uint64))
		}
		c.at[key] = c.blocks.PushFront(key)
	}
}
