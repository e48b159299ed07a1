package comparison

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// MayBeOneServer reports whether both sides may be one server: it would find the texts of the one side in its cache for
// the other. Unequal texts cost two servers little, so they count as one where it cannot be told: at one port, with an
// address in common or a name that does not resolve. resolve is nil where nothing is resolved.
func MayBeOneServer(ctx context.Context, names, ports [2]string,
	resolve func(ctx context.Context, host string) ([]netip.Addr, error),
) bool {
	for side, port := range ports {
		if port == "443" {
			ports[side] = "80" // one server often has both
		}
	}
	if ports[0] != ports[1] {
		return false
	}
	if names[0] == names[1] {
		return true
	}
	var addresses [2][]netip.Addr
	for side, name := range names {
		addresses[side] = known(name)
		if len(addresses[side]) > 0 {
			continue
		}
		if resolve == nil {
			return false
		}
		found, err := resolve(ctx, name)
		if err != nil {
			return true
		}
		for _, a := range found {
			addresses[side] = append(addresses[side], plain(a))
		}
	}
	return slices.ContainsFunc(addresses[0], func(a netip.Addr) bool { return slices.Contains(addresses[1], a) })
}

// known returns the address of a name that needs no resolution.
func known(name string) []netip.Addr {
	if a, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{plain(a)}
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return []netip.Addr{ownAddress}
	}
	return nil
}

// ownAddress stands for all addresses of this machine: a server at one of them may be at all of them.
var ownAddress = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// plain returns one form of an address.
func plain(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.IsLoopback() || a.IsUnspecified() {
		return ownAddress
	}
	own, _ := net.InterfaceAddrs() // else only loopback addresses are known
	for _, one := range own {
		if ip, ok := one.(*net.IPNet); ok {
			if o, ok := netip.AddrFromSlice(ip.IP); ok && o.Unmap() == a {
				return ownAddress
			}
		}
	}
	return a
}
