package openai

import (
	"sync"
	"time"
)

// needs are those of all users of a client.
type needs struct {
	mu  sync.Mutex
	all map[*Need]bool
}

// A Need is how many connections to each pod one user of a client needs, those of its requests in flight included. As long as no
// user has said so, the client keeps them all.
type Need struct {
	client             *Client
	keep, soon, flying []int
}

// Need returns a user's need, which is none. The caller must close it.
func (c *Client) Need() *Need {
	n := &Need{client: c}
	n.Set(nil, nil, nil)
	return n
}

// Set says how many connections the user needs to the first pod, and so on: within Idle, soon, and for its requests in flight, of which
// some may not have taken theirs yet. It closes those that no user needs, those that were idle for longer than Idle, and those that the server has closed. It returns how many all users need soon, for Warm.
func (n *Need) Set(keep, soon, flying []int) (total []int) {
	n.client.needed.mu.Lock()
	defer n.client.needed.mu.Unlock()
	n.client.needed.all[n], n.keep, n.soon, n.flying = true, keep, soon, flying
	n.client.trim()
	return n.client.needed.sum(func(n *Need) []int { return n.soon })
}

// sum adds up needs by pod. The caller holds mu.
func (n *needs) sum(of func(*Need) []int) (total []int) {
	for user := range n.all {
		for i, own := range of(user) {
			if i == len(total) {
				total = append(total, 0)
			}
			total[i] += own
		}
	}
	return total
}

// Close ends the need.
func (n *Need) Close() {
	n.client.needed.mu.Lock()
	defer n.client.needed.mu.Unlock()
	delete(n.client.needed.all, n)
	n.client.trim()
}

// trim holds the pools to the sum of all needs. The caller holds needed.mu.
func (c *Client) trim() {
	now, all := time.Now(), c.pods.Load().all
	none := make([]int, len(all))
	total := append(c.needed.sum(func(n *Need) []int { return n.keep }), none...)
	flying := append(c.needed.sum(func(n *Need) []int { return n.flying }), none...)
	for i, p := range all {
		p.pool.Trim(total[i], flying[i], now, c.target.Idle)
	}
}
