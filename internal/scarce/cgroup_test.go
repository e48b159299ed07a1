package scarce

import (
	"testing"
	"testing/fstest"
)

func TestMemoryLimit(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no cgroup": {nil, 0},
		"version 2, in a container": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n",
		}, 256 << 20},
		"version 2, the pod's is less": {map[string]string{
			"proc/self/cgroup": "0::/kubepods.slice/pod1.slice/container.scope\n",
			"sys/fs/cgroup/kubepods.slice/pod1.slice/memory.max":                 "104857600\n",
			"sys/fs/cgroup/kubepods.slice/pod1.slice/container.scope/memory.max": "268435456\n",
			"sys/fs/cgroup/kubepods.slice/memory.max":                            "max\n",
		}, 100 << 20},
		"version 2, the host's path": {map[string]string{
			"proc/self/cgroup": "0::/../../system.slice/docker-1.scope\n", "sys/fs/cgroup/memory.max": "1000000\n",
		}, 1000000},
		"version 2, none": {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		"version 1": {map[string]string{
			"proc/self/cgroup": "12:cpu,cpuacct:/b\n9:memory:/docker/a\n0::/x\n", "sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes": "536870912\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 512 << 20},
		"nonsense": {map[string]string{"proc/self/cgroup": "x\n0::/\n", "sys/fs/cgroup/memory.max": "-5\n"}, 0},
	} {
		root := fstest.MapFS{}
		for path, text := range c.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := MemoryLimit(root); got != c.want {
			t.Errorf("%s: want %d, got %d", name, c.want, got)
		}
	}
}
