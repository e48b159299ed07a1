//go:build !linux

package outside

import "net"

// reserve returns a port of loopback that was free. Elsewhere than on Linux nothing keeps it so.
func reserve() (port int, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port = l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
