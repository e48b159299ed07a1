package lab

import (
	"context"
	"sort"
	"sync"
	"time"
)

// A Usage is the CPU time of a process over its life, sampled every 50 ms.
type Usage struct {
	stop context.CancelFunc
	done sync.WaitGroup
	at   []int64         // ns since the Unix epoch
	used []time.Duration // CPU time up to then
}

// WatchCPU starts to watch a process, which may end meanwhile. The caller must call Stop.
func WatchCPU(pid int) *Usage {
	ctx, stop := context.WithCancel(context.Background())
	u := &Usage{stop: stop}
	u.done.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			used, err := CPU(pid)
			if err != nil {
				return // the process has ended
			}
			u.at, u.used = append(u.at, time.Now().UnixNano()), append(u.used, used)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return u
}

// Stop ends the watch and waits for it.
func (u *Usage) Stop() {
	u.stop()
	u.done.Wait()
}

// Between returns the CPU time between two instants, ns since the Unix epoch. Call it after Stop. It interpolates
// between samples and counts nothing outside of them.
func (u *Usage) Between(from, to int64) time.Duration { return u.up(to) - u.up(from) }

func (u *Usage) up(ns int64) time.Duration {
	i := sort.Search(len(u.at), func(i int) bool { return u.at[i] >= ns })
	switch {
	case len(u.at) == 0:
		return 0
	case i == 0:
		return u.used[0]
	case i == len(u.at):
		return u.used[i-1]
	}
	part := float64(ns-u.at[i-1]) / float64(u.at[i]-u.at[i-1])
	return u.used[i-1] + time.Duration(part*float64(u.used[i]-u.used[i-1]))
}
