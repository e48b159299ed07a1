package sim

import "sync"

// cache is a prefix cache of whole blocks. The key of a block stands for the block and everything before it. The least
// recently used block is evicted first. A request uses its blocks from the last to the first, so a block is always used
// later than the blocks that continue it, and no block is stored without the block before it.
type cache struct {
	mu     sync.Mutex
	room   int // in blocks
	at     map[uint64]int32
	blocks []cached // a ring by last use, linked by prev and next; blocks[0] is its sentinel and holds no key
}

type cached struct {
	key        uint64
	prev, next int32 // prev: used later, next: used earlier
}

func newCache(room int) *cache {
	return &cache{room: room, at: make(map[uint64]int32), blocks: []cached{{}}}
}

// lookup counts the leading keys that are stored, and uses them.
func (c *cache) lookup(keys []uint64) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	hit := 0
	for hit < len(keys) {
		if _, ok := c.at[keys[hit]]; !ok {
			break
		}
		hit++
	}
	c.use(keys[:hit])
	return hit
}

// store uses all keys. New keys evict the least recently used blocks.
func (c *cache) store(keys []uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.use(keys[:min(len(keys), c.room)])
}

func (c *cache) use(keys []uint64) {
	for i := len(keys) - 1; i >= 0; i-- {
		n, ok := c.at[keys[i]]
		switch {
		case ok:
			c.unlink(n)
		case len(c.blocks) <= c.room:
			n = int32(len(c.blocks)) // Options.Check keeps room below 2^31
			c.blocks = append(c.blocks, cached{})
		default:
			n = c.blocks[0].prev
			c.unlink(n)
			delete(c.at, c.blocks[n].key)
		}
		c.at[keys[i]] = n
		first := c.blocks[0].next
		c.blocks[n] = cached{key: keys[i], prev: 0, next: first}
		c.blocks[first].prev = n
		c.blocks[0].next = n
	}
}

func (c *cache) unlink(n int32) {
	b := c.blocks[n]
	c.blocks[b.prev].next = b.next
	c.blocks[b.next].prev = b.prev
}
