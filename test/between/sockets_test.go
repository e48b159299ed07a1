//go:build between

package between_test

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A sampler counts the connections to servers of this machine as the kernel lists them, fifty times a second.
type sampler struct {
	mu      sync.Mutex
	watched map[string]*connections // by port, as the kernel writes it
}

// connections are those of a client to a server over a time.
type connections struct {
	samples, sum, most int
	clients            map[string]bool // addresses of the client's end, so each is a connection
}

func (c *connections) mean() float64 { return float64(c.sum) / float64(max(1, c.samples)) }

// newSampler starts a sampler, which ends with the test.
func newSampler(t *testing.T) *sampler {
	t.Helper()
	s := &sampler{watched: map[string]*connections{}}
	if _, err := open(); err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.sample()
			case <-end:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(end)
		sampling.Wait()
	})
	return s
}

// watch begins to count the connections to an address.
func (s *sampler) watch(address string) *connections {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &connections{clients: map[string]bool{}}
	s.watched[port(address)] = c
	return c
}

// leave ends the count.
func (s *sampler) leave(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watched, port(address))
}

func (s *sampler) sample() {
	all, err := open()
	if err != nil {
		return // it could be read at the start
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for port, c := range s.watched {
		c.samples++
		c.sum += len(all[port])
		c.most = max(c.most, len(all[port]))
		for _, client := range all[port] {
			c.clients[client] = true
		}
	}
}

// port returns the port of an address as /proc/net/tcp writes it: four hexadecimal digits.
func port(address string) string {
	_, text, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(text)
	return fmt.Sprintf("%04X", n)
}

// open returns the clients of the open TCP connections of this machine, by the server's port.
func open() (clients map[string][]string, err error) {
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return nil, err
	}
	clients = map[string][]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			continue
		}
		// proc(5), and include/net/tcp_states.h: established, or closed by the server alone.
		_, server, ok := strings.Cut(fields[2], ":")
		if !ok || fields[3] != "01" && fields[3] != "08" || slices.Contains(clients[server], fields[1]) {
			continue // the kernel may list one twice, because the list changes while it is read
		}
		clients[server] = append(clients[server], fields[1])
	}
	return clients, nil
}

// A connection of this process is in the list from its server's side and from its own.
func TestOpenConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := open()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0100007F:" + port(c.LocalAddr().String())}
	if diff := cmp.Diff(want, all[port(l.Addr().String())]); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
