package openai

import (
	"sync"
	"time"
)

// needs are those of all users of a client.
type needs struct {
	mu  sync.Mutex
	all map[*Need][]int // connections to keep to each pod
}

// A Need is how many idle connections one user of a client wants kept for its next requests. As long as no user has said
// so, the client keeps them all.
type Need struct{ client *Client }

// Need returns a user's need, which is none. The caller must close it.
func (c *Client) Need() *Need {
	n := &Need{c}
	n.Set(nil)
	return n
}

// Set says how many connections are to be kept to the first pod, and so on. It closes those that no user needs, those
// that were idle for longer than Idle, and those that the server has closed.
func (n *Need) Set(own []int) {
	n.client.needed.mu.Lock()
	defer n.client.needed.mu.Unlock()
	n.client.needed.all[n] = own
	n.client.trim()
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
	now := time.Now()
	for i, p := range c.pods.Load().all {
		most := 0
		for _, own := range c.needed.all {
			if i < len(own) {
				most += own[i]
			}
		}
		p.pool.Trim(most, now, c.target.Idle)
	}
}

// Kept reports whether requests go out on connections that others have left, or that were opened ahead.
func (c *Client) Kept() bool { return c.target.Connections != ConnectionsEach }

// Idle returns for how long a connection may be idle, and ConnectAhead how long before an instant one is opened.
func (c *Client) Idle() (idle, ahead time.Duration) { return c.target.Idle, c.target.ConnectAhead }
