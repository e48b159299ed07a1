//go:build faults

package faults_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"replayd/test/outside"
)

// Response codes of a name server (RFC 1035, section 4.1.1).
const (
	nameThere  = 0 // no error
	nameBroken = 2 // the server failed
	nameGone   = 3 // there is no such name
)

// A nameServer answers every question for an address with a changeable address, or with an error.
type nameServer struct {
	address string // in a network of its own in 127.0.0.0/8: resolv.conf knows no port but 53
	mu      sync.Mutex
	at      netip.Addr
	code    byte
	asked   int
}

// newNameServer starts a nameServer, which ends with the test. It needs root for port 53.
func newNameServer(t *testing.T, at netip.Addr) *nameServer {
	t.Helper()
	var conn net.PacketConn
	n := &nameServer{at: at}
	for range 20 {
		n.address = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
		var err error
		if conn, err = net.ListenPacket("udp4", n.address+":53"); err == nil {
			break
		}
		if os.Geteuid() != 0 {
			outside.Missing(t, exec.ErrNotFound, fmt.Sprintf("port 53: %v", err))
		}
	}
	if conn == nil {
		t.Fatal("no address with a free port 53")
	}
	var work sync.WaitGroup
	work.Go(func() {
		for question := make([]byte, 1500); ; {
			size, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			if answer := n.answer(question[:size]); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	})
	t.Cleanup(func() {
		_ = conn.Close()
		work.Wait()
	})
	return n
}

// set changes the answer.
func (n *nameServer) set(at netip.Addr, code byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at, n.code = at, code
}

func (n *nameServer) questions() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// answer returns the question with an answer: an address with a time to live of an hour, which nobody may rely on.
func (n *nameServer) answer(question []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	const head = 12
	end := head
	for end < len(question) && question[end] != 0 {
		end += 1 + int(question[end])
	}
	end += 5 // the root label, type and class
	if end > len(question) {
		return nil
	}
	n.asked++
	a := append([]byte(nil), question[:end]...)
	a[2], a[3] = 0x81, 0x80|n.code        // an answer, recursion was asked for and is there
	copy(a[6:], []byte{0, 0, 0, 0, 0, 0}) // no records but the question
	kind := uint16(a[end-4])<<8 | uint16(a[end-3])
	if n.code != nameThere || kind != 1 { // there are only A records
		return a
	}
	a[7] = 1
	a = append(a, 0xc0, head, 0, 1, 0, 1, 0, 0, 0x0e, 0x10, 0, 4)
	at := n.at.As4()
	return append(a, at[:]...)
}

// serveWith starts the daemon with the name server as its only one. It needs a mount namespace, and so root.
func (s *stage) serveWith(t *testing.T, n *nameServer) *outside.Process {
	t.Helper()
	if err := exec.Command("unshare", "--mount", "true").Run(); err != nil {
		outside.Missing(t, exec.ErrNotFound, fmt.Sprintf("unshare --mount: %v", err))
	}
	resolv := outside.Write(t, s.Dir, "resolv.conf", "nameserver "+n.address+"\noptions timeout:1 attempts:2\n")
	s.Lives++
	p := outside.Start(t, filepath.Join(s.Dir, fmt.Sprintf("serve%d.out", s.Lives)), "unshare", "--mount", "sh", "-c",
		`mount --bind "$0" /etc/resolv.conf && exec "$@"`, resolv, binary, "serve", "--config", s.Config, "--web.listen-address", s.Listen, "--web.enable-lifecycle")
	p.Ready(t, http.DefaultClient, s.URL()+"/-/ready")
	return p
}

// twoEngines starts two simulated engines at two addresses with the same port, and returns them with their logs.
func twoEngines(t *testing.T, dir string) (port string, at [2]netip.Addr, logs [2]string, engines [2]*outside.Process) {
	t.Helper()
	_, port, _ = net.SplitHostPort(outside.Address(t))
	for i := range at {
		at[i] = netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)})
		logs[i] = outside.Write(t, dir, fmt.Sprintf("engine%d.jsonl", i), "")
		host := at[i].String() + ":" + port
		engines[i] = outside.Start(t, strings.TrimSuffix(logs[i], "jsonl")+"out", binary, "sim", "--web.listen-address", host, "--log", logs[i],
			"--ttft", "5ms", "--itl", "2ms")
		engines[i].Ready(t, http.DefaultClient, "http://"+host+"/health")
	}
	return port, at, logs, engines
}
