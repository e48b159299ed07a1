package scarce

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// MemoryLimit returns the least memory limit, in bytes, of this process's cgroup and those above it, of version 1 or 2 (Linux,
// Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst). It returns 0 without a limit, and if none can be read.
func MemoryLimit(root fs.FS) (least int64) {
	own, err := readShort(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(own) { // ID:CONTROLLERS:PATH
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, name := "sys/fs/cgroup", "memory.max"
		if parts[1] != "" {
			mount, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
			if !slices.Contains(strings.Split(parts[1], ","), "memory") {
				continue
			}
		}
		// In a container the path can be the host's; then only the root of the mount is there, and is the container's own.
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			text, err := readShort(root, path.Join(mount, at, name))
			n, wrong := strconv.ParseInt(strings.TrimSpace(text), 10, 64) // "max" is none
			if err == nil && wrong == nil && n > 0 && n < unlimited && (least == 0 || n < least) {
				least = n
			}
			if at == "/" {
				break
			}
		}
	}
	return least
}

// unlimited is below what version 1 has for no limit: the largest number of bytes in whole pages.
const unlimited = 1 << 62

// shortFile is the most bytes that are read of a file in /proc or /sys; these have a few hundred.
const shortFile = 64 << 10

func readShort(root fs.FS, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, shortFile))
	return string(text), err
}
