package daemon

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/openai"
)

var errNo = errors.New("no")

// A try is the result of one request for the models.
type try struct {
	takes time.Duration
	err   error // nil: an answer
}

// A try begins at each full second, or right after the try before if that took longer. No try takes longer than 5 s.
func TestAwait(t *testing.T) {
	f := func(name string, patience time.Duration, tries []try, wantBegins []time.Duration, wantErr string, wantEnd time.Duration) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				var begins []time.Duration
				heard := 0
				err := await(ctx, func(ctx context.Context) error {
					try := tries[min(len(begins), len(tries)-1)]
					begins = append(begins, time.Since(begin))
					timer := time.NewTimer(try.takes)
					defer timer.Stop()
					select {
					case <-timer.C:
						return try.err
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}, func(error) { heard++ })
				if fmt.Sprint(begins) != fmt.Sprint(wantBegins) || fmt.Sprint(err) != wantErr || time.Since(begin) != wantEnd {
					t.Errorf("want tries at %v, %s after %v, got %v, %v after %v", wantBegins, wantErr, wantEnd, begins, err, time.Since(begin))
				}
				if heard == 0 || heard > len(begins) {
					t.Errorf("%d tries, told of %d", len(begins), heard)
				}
			})
		})
	}
	const s, ms = time.Second, time.Millisecond
	f("at once", s, []try{{0, nil}}, []time.Duration{0}, "<nil>", 0)
	f("the third time", time.Minute, []try{{ms, errNo}, {ms, errNo}, {ms, nil}}, []time.Duration{0, s, 2 * s}, "<nil>", 2*s+ms)
	f("slow failures", time.Minute, []try{{2500 * ms, errNo}, {ms, errNo}, {0, nil}}, []time.Duration{0, 2500 * ms, 3 * s}, "<nil>", 3*s)
	f("silent, then there", time.Minute, []try{{time.Hour, nil}, {time.Hour, nil}, {3 * s, nil}}, []time.Duration{0, 5 * s, 10 * s}, "<nil>", 13*s)
	f("never", 2500*ms, []try{{ms, errNo}}, []time.Duration{0, s, 2 * s}, "no", 2500*ms)
	f("always silent", 12*s, []try{{time.Hour, nil}}, []time.Duration{0, 5 * s, 10 * s}, "no answer within 5s", 12*s)
	f("silent, and little patience", s, []try{{time.Hour, nil}}, []time.Duration{0}, "context deadline exceeded", s)
	f("the last try is cut short: the one before says why", 5500*ms, []try{{ms, errNo}, {time.Hour, nil}}, []time.Duration{0, s}, "no", 5500*ms)
	several := fmt.Errorf("%w: a, b", openai.ErrSeveralModels)
	f("no matter of time", time.Hour, []try{{ms, errNo}, {ms, several}}, []time.Duration{0, s}, several.Error(), s+ms)
}
