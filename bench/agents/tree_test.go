//go:build bench && linux

package agents_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A tree watches the memory of a process and its descendants: the sum of their PSS, in which a page that several share counts once.
type tree struct {
	stop context.CancelFunc
	done sync.WaitGroup
	peak int64 // bytes
	most int   // processes
}

// watchTree samples a tree every 200 ms until stopped.
func watchTree(ctx context.Context, root int) *tree {
	ctx, stop := context.WithCancel(ctx)
	w := &tree{stop: stop}
	w.done.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			sum, pids := int64(0), descendants(root)
			for _, pid := range pids {
				sum += pss(pid)
			}
			w.peak, w.most = max(w.peak, sum), max(w.most, len(pids))
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return w
}

func (w *tree) end() {
	w.stop()
	w.done.Wait()
}

// descendants returns a process and all below it.
func descendants(root int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		pid, err1 := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, err2 := strconv.Atoi(string(fields[1]))
		if err1 == nil && err2 == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	all := []int{root}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// pss is 0 for a process that has ended.
func pss(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}
