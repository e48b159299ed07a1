// Package scarce tells errors for want of a resource of this process, such as a descriptor, from errors of other hosts. A request that
// finds no descriptor says nothing about its server.
package scarce

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
)

// A Resource is something that the process or its machine has run out of.
type Resource string

// Resources; the list is complete. Label values come from here only.
const (
	None        Resource = ""
	Descriptors Resource = "descriptors" // open files, of the process or of the system
	Memory      Resource = "memory"      // of the kernel, such as buffers of sockets
	Ports       Resource = "ports"       // local ports for connections to one address
)

// Resources lists all resources.
func Resources() []Resource { return []Resource{Descriptors, Memory, Ports} }

var shortages = map[syscall.Errno]Resource{
	syscall.EMFILE: Descriptors, syscall.ENFILE: Descriptors, syscall.ENOMEM: Memory, syscall.ENOBUFS: Memory,
}

// Of returns the resource whose lack is the cause of an error.
func Of(err error) Resource {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		if errno == syscall.EADDRNOTAVAIL {
			return portsFor(err)
		}
		return shortages[errno]
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok { // it keeps the text of its cause alone
		for errno, what := range shortages {
			if strings.HasSuffix(dns.Err, errno.Error()) {
				return what
			}
		}
	}
	return None
}

// portsFor tells apart two causes of one error of a dial: all local ports are in use for the address, or this machine has no address
// from which that one could be reached, such as ::1 without IPv6. The second is also there for UDP. It sends nothing.
func portsFor(err error) Resource {
	dial, ok := errors.AsType[*net.OpError](err)
	if !ok || dial.Op != "dial" || dial.Addr == nil || !strings.HasPrefix(dial.Net, "tcp") {
		return None
	}
	c, err := new(net.Dialer).DialContext(context.Background(), "udp", dial.Addr.String())
	if err != nil {
		return None
	}
	_ = c.Close()
	return Ports
}

var met = map[Resource]*atomic.Int64{None: {}, Descriptors: {}, Memory: {}, Ports: {}}

// Met reports whether the lack of a resource is the cause of an error, and counts it if so.
func Met(err error) bool {
	of := Of(err)
	if of == None {
		return false
	}
	met[of].Add(1)
	return true
}

// Times returns how often Met has met the lack of a resource since the start of the process.
func Times(of Resource) int64 { return met[of].Load() }

// DescriptorLimit returns how many descriptors this process may have open. Go raises the soft limit to the hard one at
// the start.
func DescriptorLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return int(min(limit.Cur, math.MaxInt32))
}
