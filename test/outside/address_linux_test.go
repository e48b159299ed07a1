package outside

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// A reserved port refuses connections until a server of this test listens on it, and again afterwards. Another reservation of it fails.
func TestAddressIsReserved(t *testing.T) {
	address := Address(t)
	for range 2 {
		if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("want it refused, got %v", err)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		l.Close()
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	taken := syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}
	if err := syscall.Bind(fd, &taken); !errors.Is(err, syscall.EADDRINUSE) { // as another test reserves
		t.Errorf("want it taken, got %v", err)
	}
}
