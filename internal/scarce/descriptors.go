package scarce

import (
	"math"
	"syscall"
)

// DescriptorLimit returns how many descriptors this process may have open. Go raises the soft limit to the hard one at the start.
func DescriptorLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return int(min(limit.Cur, math.MaxInt32))
}
