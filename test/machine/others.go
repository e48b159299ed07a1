package machine

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// watchEvery is how often watchOthers looks. Linux counts CPU time in steps of 10 ms.
const watchEvery = 2 * time.Second

var most atomic.Uint64 // the bits of the busiest interval's cores

// busiest returns how many cores others had in the busiest interval since the suite began; 0 where that is unknown.
func busiest() float64 { return math.Float64frombits(most.Load()) }

// watchOthers watches, for the life of the process, the CPU time that neither this process nor its children used. Time that a
// hypervisor gave to other machines counts, too.
func watchOthers() {
	spent, err := othersCPU()
	for at := time.Now(); err == nil; {
		<-time.After(watchEvery)
		before, since := spent, at
		if spent, err = othersCPU(); err == nil {
			at = time.Now()
			most.Store(math.Float64bits(max(busiest(), (spent-before).Seconds()/at.Sub(since).Seconds())))
		}
	}
}

// A ticks is a CPU time in 1/100 s, as /proc has it on all architectures that Go knows.
type ticks int64

func (t ticks) duration() time.Duration { return time.Duration(t) * 10 * time.Millisecond }

// othersCPU returns the CPU time of all processes but this one and its descendants.
func othersCPU() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	var user, nice, system, idle, wait, irq, soft, steal ticks
	if _, err := fmt.Sscan(strings.TrimPrefix(string(text), "cpu"), &user, &nice, &system, &idle, &wait, &irq, &soft, &steal); err != nil {
		return 0, fmt.Errorf("/proc/stat: %w", err)
	}
	own, err := ownCPU(os.Getpid())
	return (user + nice + system + irq + soft + steal - own).duration(), err
}

// ownCPU returns the CPU time of a process, of its descendants, and of those of them that have ended.
func ownCPU(root int) (ticks, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	used, children := map[int]ticks{}, map[int][]int{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, fields, _ := strings.Cut(string(text), ") ") // a name may hold spaces
		var state string
		var parent, n int
		var u, s, cu, cs ticks
		if _, err := fmt.Sscan(fields, &state, &parent, &n, &n, &n, &n, new(uint), new(uint), new(uint), new(uint), new(uint), &u, &s, &cu, &cs); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		var pid int
		if _, err := fmt.Sscan(string(text), &pid); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		used[pid], children[parent] = u+s+cu+cs, append(children[parent], pid)
	}
	var sum func(pid int) ticks
	sum = func(pid int) ticks {
		all := used[pid]
		for _, child := range children[pid] {
			all += sum(child)
		}
		return all
	}
	return sum(root), nil
}
