package replay

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/trace"
)

// maxLogLines bounds the queued lines while the log is blocked.
const maxLogLines = 1000

// A journal writes a runner's log, and calls Dropped and Noted, on a goroutine of its own: a log can block,
// so nothing of it runs under the lock. The caller of a method holds the lock, unless the comment says otherwise.
type journal struct {
	name  string // of the workload
	log   *slog.Logger
	hooks *Hooks

	ready sync.Cond // write waits here. Its lock is the runner's, which guards the fields below
	queue []func()  // log lines and callbacks
	drops map[measure.DropReason]int
	lost  int  // lines left out beyond maxLogLines
	over  bool // nothing more comes

	large           bool // a request is larger than the whole budget
	unread, unknown bool // an answer had a part without a meaning, a finish reason that is not known
	invalid, unsent seldom
	choices, slow   seldom
}

func (j *journal) add(line func()) {
	if len(j.queue) == maxLogLines {
		j.lost++
		return
	}
	j.queue = append(j.queue, line)
	j.ready.Signal()
}

// say queues a log line about the workload.
func (j *journal) say(level slog.Level, text string, args ...any) {
	j.add(j.line(level, text, args...))
}

// line returns a func that writes a log line about the workload. Its source is the caller's caller.
func (j *journal) line(level slog.Level, text string, args ...any) (write func()) {
	var caller [1]uintptr
	runtime.Callers(3, caller[:])
	line := slog.NewRecord(time.Time{}, level, text, caller[0])
	line.Add("workload", j.name)
	line.Add(args...)
	return func() {
		if line.Time = time.Now(); j.log.Enabled(context.Background(), level) {
			_ = j.log.Handler().Handle(context.Background(), line) // as slog.Logger does
		}
	}
}

// drop queues the drop of a row for Hooks.Dropped.
func (j *journal) drop(why measure.DropReason) {
	if j.hooks.Dropped == nil {
		return
	}
	if j.drops == nil {
		j.drops = map[measure.DropReason]int{}
	}
	j.drops[why]++
	j.ready.Signal()
}

// end lets write return when it has written all.
func (j *journal) end() {
	j.over = true
	j.ready.Signal()
}

// write writes queued lines in order until the runner has ended. Only the end of Run waits for it. The caller does not
// hold the lock.
func (j *journal) write() {
	for {
		j.ready.L.Lock()
		for len(j.queue)+len(j.drops) == 0 && !j.over {
			j.ready.Wait()
		}
		lines, dropped, lost := j.queue, j.drops, j.lost
		j.queue, j.drops, j.lost = nil, nil, 0
		j.ready.L.Unlock()
		for _, line := range lines {
			line()
		}
		for _, why := range slices.Sorted(maps.Keys(dropped)) {
			j.hooks.Dropped(why, dropped[why])
		}
		if lost > 0 {
			j.log.Warn("log lines were dropped: the log is slow", "workload", j.name, "lines", lost)
		}
		if len(lines)+len(dropped) == 0 {
			return
		}
	}
}

// A seldom counts events that are logged at most once a minute.
type seldom struct {
	n  int       // since the last log line
	at time.Time // of that line
}

// due counts one more. It returns how many are to be logged now; 0: none.
func (s *seldom) due() (n int) {
	s.n++
	now := time.Now()
	if !s.at.IsZero() && now.Sub(s.at) < time.Minute {
		return 0
	}
	n, s.at, s.n = s.n, now, 0
	return n
}

// notBuilt logs that a request was dropped because its message could not be built.
func (j *journal) notBuilt(row *dispatch.Row) {
	if n := j.invalid.due(); n > 0 {
		j.say(slog.LevelError, "a request's message cannot be built: dropped as invalid",
			"id", row.ID, "err", row.Message.Err, "dropped", n)
	}
}

// several logs that a row was left out because it asks for several choices. The caller does not hold the lock.
func (j *journal) several(row *trace.Record) {
	j.ready.L.Lock()
	defer j.ready.L.Unlock()
	if n := j.choices.due(); n > 0 {
		j.say(slog.LevelWarn, "a row asks for several choices (n > 1), whose chunks come mixed: filtered "+
			"(n: 1 in extra_body replaces a payload's)",
			"row", row.Number, "line", row.Line, "filtered", n)
	}
}

// notSent logs that a request was dropped because this process lacked a resource. The caller does not hold the lock.
func (j *journal) notSent(id string, err error) {
	j.ready.L.Lock()
	defer j.ready.L.Unlock()
	if n := j.unsent.due(); n > 0 {
		j.say(slog.LevelError, "a request cannot be sent: dropped as missed", "id", id, "err", err, "dropped", n)
	}
}

// answered logs the first answer with a part that has no meaning, and the first finish reason that is not known. The
// caller does not hold the lock.
func (j *journal) answered(r *measure.Request) {
	if r.Unread == 0 && r.Finish != measure.OtherFinish {
		return
	}
	j.ready.L.Lock()
	defer j.ready.L.Unlock()
	if r.Unread > 0 && !j.unread {
		j.unread = true
		j.say(slog.LevelWarn, "a part of an answer has no meaning to replayd: it is counted, and shown this once",
			"id", r.ID, "part", r.UnreadText)
	}
	if r.Finish == measure.OtherFinish && !j.unknown {
		j.unknown = true
		j.say(slog.LevelWarn, "a finish reason is not known: such answers count as ended well",
			"id", r.ID, "finish_reason", r.FinishReason)
	}
}

// slowed logs that the server fails every request in the same way.
func (j *journal) slowed(req *measure.Request) {
	if j.slow.due() > 0 {
		j.say(slog.LevelWarn, "the server fails every request in the same way: the closed loop slows down, "+
			"to a request a second for each lane at the least",
			"id", req.ID, "outcome", req.Outcome, "err", req.Error)
	}
}

// tooLarge logs the first request that alone exceeds the budget.
func (j *journal) tooLarge(row *dispatch.Row) {
	if !j.large {
		j.large = true
		j.say(slog.LevelWarn, "a single request exceeds the whole budget: such requests are always dropped",
			"id", row.ID, "input_tokens", row.Due.InputTokens, "output_tokens", row.Due.OutputTokens)
	}
}

// budget logs the first request that the budget refuses, and the end of the refusals. In a closed loop none is dropped.
func (j *journal) budget(closed bool, b *limits.Budget, s limits.Spell, full limits.Bound) {
	switch spent := s.Last.Sub(s.From).Round(time.Millisecond); {
	case full != "" && closed:
		j.say(slog.LevelWarn, "the budget is exhausted: requests wait until there is room",
			"budget", full, "limit", b.Most(full))
	case full != "":
		j.say(slog.LevelWarn, "the budget is exhausted: requests beyond it are dropped",
			"budget", full, "limit", b.Most(full))
	case closed:
		j.say(slog.LevelInfo, "the budget suffices again: it held nothing back for a minute", "spent_for", spent)
	default:
		j.say(slog.LevelInfo, "the budget suffices again: it dropped nothing for a minute",
			"spent_for", spent, "dropped", s.Refused)
	}
}

// crowded logs the first drop at the limit of dispatch.Waiting, and the end of such drops.
func (j *journal) crowded(begins bool, s limits.Spell) {
	if begins {
		j.say(slog.LevelWarn, fmt.Sprintf("%d MiB of requests wait: others that would have to are dropped as overload",
			dispatch.MostWaiting>>20))
		return
	}
	j.say(slog.LevelInfo, "the waiting requests fit again: none was dropped for a minute",
		"full_for", s.Last.Sub(s.From).Round(time.Millisecond), "dropped", s.Refused)
}

// rejoins holds a text for each reason why a replay rejoins its plan.
var rejoins = [...]string{
	dispatch.Stopped: "this process was not running for a while: rows due until now are missed",
	dispatch.Ahead:   "the wall clock is ahead: it was set, or the system slept; rows due until now are missed",
	dispatch.SetBack: "the wall clock was set back: no row goes out twice, " +
		"the replay waits until the clock comes to the next one",
	dispatch.SetFarBack: "the wall clock was set back by more than a loop: the replay joins the loop where it is now",
	dispatch.Postponed:  "this process was not running when the replay was to begin: it begins later, and no row is missed",
}

// note logs a text about the workload, and calls Noted with it and what is to be added.
func (j *journal) note(level slog.Level, text, added string, args ...any) {
	write := j.line(level, text, args...)
	j.add(func() {
		if write(); j.hooks.Noted != nil {
			j.hooks.Noted(level, fmt.Sprintf("%s (%s%s)", text, j.name, added))
		}
	})
}
