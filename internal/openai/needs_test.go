package openai

import (
	"net"
	"slices"
	"testing"
	"time"

	"replayd/test/wiretest"
)

// What all users of a client need is kept, and no more. A client without users keeps nothing that was needed before.
func TestNeed(t *testing.T) {
	url := wiretest.Listen(t, "tcp4", func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	c := newClient(t, Target{Options: Options{URL: url, API: Completions}})
	pool := &c.pods.Load().all[0].pool
	need := c.Need()
	open := func(want int) {
		t.Helper()
		if got := pool.Fresh(time.Now(), time.Hour); got != want {
			t.Errorf("want %d idle connections, got %d", want, got)
		}
	}
	if err := c.Warm(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	need.Set([]int{4}, nil, nil)
	open(4)
	other := c.Need()
	other.Set([]int{1}, []int{3}, nil)
	if soon := need.Set([]int{1}, []int{2}, nil); !slices.Equal(soon, []int{5}) {
		t.Errorf("both need %v soon, want 5", soon)
	}
	open(2)
	other.Close()
	open(1)
	need.Close()
	open(0)
}
