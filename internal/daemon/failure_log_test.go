package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

// The first failure of a kind is logged at once. Later ones are counted once a minute. After a quiet minute the next
// failure is logged at once again. Each line about a request has its id.
func TestFailureLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		c := newFailureLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
					return slog.Attr{}
				}
				return a
			},
		})))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.run(ctx)
		}()
		n := 0
		fail := func(workload string, o measure.Outcome) {
			n++
			failureObserver{workload, c.add}.Observe(&measure.Request{ID: fmt.Sprint(workload, "/0/", n), Outcome: o, Error: "why"})
		}
		<-time.After(50 * time.Millisecond) // so that no failure falls exactly on a minute
		for range 1000 {                    // in 100 s
			fail("a", measure.ConnectFailed)
			fail("a", measure.OK)
			<-time.After(100 * time.Millisecond)
		}
		c.add("a", "dropped: missed", 2, "", "")
		c.add("a", "dropped: missed", 3, "", "")
		fail("b", measure.ConnectFailed)
		<-time.After(3 * time.Minute)
		fail("a", measure.ConnectFailed)
		fail("a", measure.ConnectFailed)
		stop()
		<-ended
		want := `msg="request failed: connect" workload=a id=a/0/1 err=why
msg="more requests failed: connect" count=599 workload=a id=a/0/1199 err=why
msg="request dropped: missed" workload=a
msg="request failed: connect" workload=b id=b/0/2001 err=why
msg="more requests dropped: missed" count=4 workload=a
msg="more requests failed: connect" count=400 workload=a id=a/0/1999 err=why
msg="request failed: connect" workload=a id=a/0/2002 err=why
msg="more requests failed: connect" count=1 workload=a id=a/0/2003 err=why
`
		if got := out.String(); got != want {
			t.Errorf("want\n%sgot\n%s", want, got)
		}
	})
}
