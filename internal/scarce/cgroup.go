package scarce

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A Cgroup is one of this process: where its version is mounted, and its path below that. Both are for an fs.FS of the root.
type Cgroup struct {
	Mount, Path string
	V1          bool
}

// Cgroups returns the cgroups that may have a controller's files, from the lines "ID:CONTROLLERS:PATH" of /proc/self/cgroup. The
// controller belongs to version 1 if a line names it, else to version 2, whose line is "0::PATH".
func Cgroups(root fs.FS, controller string) []Cgroup {
	text, err := ReadKernel(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var v1, v2 []Cgroup
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		own := path.Clean("/" + parts[2]) // the leading slash makes Clean remove any ".."
		if parts[0] == "0" && parts[1] == "" {
			v2 = append(v2, Cgroup{"sys/fs/cgroup", own, false})
		} else if slices.Contains(strings.Split(parts[1], ","), controller) {
			v1 = append(v1, Cgroup{"sys/fs/cgroup/" + controller, own, true})
		}
	}
	return append(v1, v2...)
}

// maxKernel is the most bytes that are read of a file in /proc or /sys; these have a few hundred.
const maxKernel = 64 << 10

// ReadKernel returns the text of a file in /proc or /sys.
func ReadKernel(root fs.FS, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKernel))
	return string(text), err
}

// MemoryLimit returns the least memory limit, in bytes, of this process's cgroup and those above it, of version 1 or 2 (Linux,
// Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst). It returns 0 without a limit, and if none can be read.
func MemoryLimit(root fs.FS) (least int64) {
	for _, own := range Cgroups(root, "memory") {
		name := "memory.max"
		if own.V1 {
			name = "memory.limit_in_bytes"
		}
		// In a container the path can be the host's; then only the root of the mount is there, and is the container's own.
		for at := own.Path; ; at = path.Dir(at) {
			text, err := ReadKernel(root, path.Join(own.Mount, at, name))
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
