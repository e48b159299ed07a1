package replay

import (
	"context"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
	"replayd/internal/openai"
)

// How often a runner looks which connections its next requests need: while one is due soon, and else.
const (
	warmEvery  = 50 * time.Millisecond
	warmSeldom = time.Second
)

// use is how a runner uses connections. The runner's lock guards it.
type use struct {
	flying [openai.MaxPods + 1]int // requests in flight, by the number of the pod
	took   time.Duration           // moving average of how long the last requests took; 0: none has ended
}

func (u *use) end(pod uint16, t *measure.Timeline) {
	u.flying[pod]--
	if took := t.End.Sub(t.Write); !t.Write.IsZero() && u.took == 0 {
		u.took = max(1, took)
	} else if !t.Write.IsZero() {
		u.took += (took - u.took) / 8
	}
}

// A forecast counts the requests that will be in flight to one pod if each takes as long as the last ones did.
type forecast struct {
	flying int           // now
	took   time.Duration // 0: not known, so none of them ends
	due    []time.Duration
	ended  int // index in due of the first one that is in flight
}

// next adds a request that is due so long from now, after those before it, and returns how many are in flight then. Those of now
// are of all ages.
func (f *forecast) next(due time.Duration) int {
	now := f.flying
	f.due = append(f.due, due)
	if f.took > 0 {
		now -= int(time.Duration(now) * max(0, min(due, f.took)) / f.took)
		for f.due[f.ended] < due-f.took {
			f.ended++
		}
	}
	return now + len(f.due) - f.ended
}

// warm keeps the connections that the next requests need, opens the missing ones shortly before they are due, so that no dial delays
// a due instant, and closes the others.
func (r *Runner) warm(ctx context.Context) {
	need := r.w.Client.Need()
	defer need.Close()
	if r.w.Client.Target().Connections == openai.ConnectionsEach {
		return
	}
	looks := time.NewTicker(warmEvery)
	defer looks.Stop()
	for {
		keep, soon, flying, quiet := r.connections()
		// Requests report the failure when they cannot connect themselves.
		_ = r.w.Client.Warm(ctx, need.Set(keep, soon, flying)...)
		looks.Reset(max(warmEvery, quiet))
		select {
		case <-looks.C:
			continue
		case <-r.near:
			looks.Reset(warmEvery)
		case <-ctx.Done():
			return
		}
		select {
		case <-looks.C:
		case <-ctx.Done():
			return
		}
	}
}

// connections returns for each pod how many connections the runner needs, those of its requests in flight included, for the rows that
// are due within idle, and for those that are due soon. Turns of sessions and rows of a closed loop have no planned instant: for them
// the runner keeps as many idle ones as it has lanes. flying has those of its requests in flight alone. quiet is for how long no row that was read needs
// another look.
func (r *Runner) connections() (keep, soon, flying []int, quiet time.Duration) {
	n := r.w.Client.NumPods()
	keep, soon, flying = make([]int, n), make([]int, n), make([]int, n)
	idle, early := r.w.Client.Target().Idle, r.w.Client.Target().ConnectAhead
	quiet = warmSeldom
	r.mu.Lock()
	given := r.step(dispatch.Event{Kind: dispatch.Poll}, nil) // detects a step of the wall clock before the next row is due
	now := time.Now()
	pods := make([]forecast, n)
	for i := range pods {
		flying[i] = r.use.flying[i+1]
		pods[i] = forecast{flying: flying[i], took: r.use.took}
	}
	rows, free := r.d.Soon(idle, now)
	for row := range rows {
		pod := 0
		if n > 1 { // hundreds of rows, with the lock held
			if pod = r.w.Client.PodOf(r.place(row)); pod < 0 || pod >= n {
				continue
			}
		}
		due := row.Due.At.Sub(now)
		quiet = min(quiet, due-early-warmEvery)
		need := min(free+pods[pod].flying, pods[pod].next(due))
		keep[pod] = max(keep[pod], need, 1)
		if early > 0 && due <= early+warmEvery {
			soon[pod] = max(soon[pod], need)
		}
	}
	if r.d.HasTurns() {
		for i := range keep {
			keep[i] = max(keep[i], pods[i].flying+(r.d.Lanes+n-1)/n)
		}
	}
	r.mu.Unlock()
	r.start(given)
	return keep, soon, flying, quiet
}

// isNear tells warm that a row was read after it has looked. The lock is held.
func (r *Runner) isNear(row *dispatch.Row) {
	if time.Until(row.Due.At) > r.w.Client.Target().ConnectAhead+warmSeldom+warmEvery { // it will be seen in time
		return
	}
	r.lookAgain()
}

// lookAgain makes warm look at once, or 50 ms after its last look.
func (r *Runner) lookAgain() { wake(r.near) }
