package openai

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"replayd/internal/measure"
)

// Chunks do not allocate: an answer of 1,100 chunks makes as many allocations as one of 100. The case "a hook"
// allocates once for each read, to show that the measurement detects allocations.
func TestChunksAllocateNothing(t *testing.T) {
	plain, escaped := usualChunk, `{"choices":[{"index":0,"delta":{"content":"a\n"},"finish_reason":null}]}`
	var made *int
	key := keyFiles{t.TempDir()}.put(t, "key", "k")
	for name, f := range map[string]struct {
		chunk   string
		key     string // path of the file
		hooks   Hooks
		atLeast float64 // allocations per chunk
		atMost  float64
	}{
		"measured": {plain, "", Hooks{}, 0, 0},
		"with key": {plain, key, Hooks{}, 0, 0},
		"kept":     {plain, "", Hooks{Keep: true}, 0, 0},
		"escaped":  {escaped, "", Hooks{Keep: true}, 0, 0},
		"a hook":   {plain, "", Hooks{Read: func(time.Time) { made = new(int) }}, 0.01, 1},
	} {
		t.Run(name, func(t *testing.T) {
			const short, long = 100, 1100
			few, many := objects(t, f.chunk, short, f.key, f.hooks), objects(t, f.chunk, long, f.key, f.hooks)
			a := (many - few) / (long - short)
			t.Logf("objects: %v in an answer of %d chunks, %v in one of %d", few, short, many, long)
			if a < f.atLeast || a > f.atMost {
				t.Errorf("want %v to %v objects a chunk, got %v", f.atLeast, f.atMost, a)
			}
			if few > maxAnswer && f.atMost == 0 {
				t.Errorf("want at most %v objects an answer, got %v", maxAnswer, few)
			}
		})
	}
	_ = made
}

// maxAnswer is the highest number of allocations of an answer, apart from its chunks. It was measured; lower it
// when the code improves.
const maxAnswer = 4.0

// objects returns the number of allocations of one answer with the given number of chunks, on a kept connection,
// after the buffers have grown.
func objects(t *testing.T, chunk string, chunks int, key string, hooks Hooks) float64 {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	defer served.Wait()
	defer l.Close()
	served.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		head, piece, end := []byte(streamHead), []byte(chunked("data: "+chunk+"\n\n")), []byte(chunked(done)+bodyEnd)
		buffer := make([]byte, 4096)
		for {
			if _, err := conn.Read(buffer); err != nil {
				return
			}
			_, _ = conn.Write(head)
			for range chunks {
				_, _ = conn.Write(piece)
			}
			_, _ = conn.Write(end)
		}
	})
	c := newClient(t, Target{Options: Options{
		URL: l.Addr().String(), Timeouts: limits,
		HTTP: config.HTTPClientConfig{BearerTokenFile: key},
	}})
	defer c.Close()
	m := message(t, c)
	lane := c.Lane()
	defer lane.Close()
	var req measure.Request
	return testing.AllocsPerRun(10, func() {
		lane.Do(t.Context(), m, &req, hooks)
		if req.Outcome != measure.OK || len(req.Timeline.Chunks) != chunks {
			t.Fatalf("want %d chunks, got %d, %s: %s", chunks, len(req.Timeline.Chunks), req.Outcome, req.Error)
		}
	})
}
