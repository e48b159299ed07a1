package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const server = "http://127.0.0.1:8000"

var errRefused = errors.New("GET " + server + "/v1/models: connect: dial tcp 127.0.0.1:8000: connect: connection refused")

// bare returns a log without times and levels.
func bare(b io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// The log gets the first failure, one failure a minute, and the success.
func TestWaitingLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		w := NewWaiting(nil, bare(&b), 15*time.Minute)
		for range 150 {
			w.Tried(server, errors.New("refused"))
			wait(time.Second)
		}
		w.Tried(server, nil)
		want := ""
		for _, waited := range []string{"0s", "1m", "2m"} {
			want += fmt.Sprintf("msg=\"waiting for the target\" url=%s waited=%s at_most=15m err=refused\n", server, waited)
		}
		want += fmt.Sprintf("msg=\"the target is ready\" url=%s waited=2m30s\n", server)
		if b.String() != want {
			t.Errorf("want\n%s\ngot\n%s", want, &b)
		}
	})
}

// A target that answers at once causes no output.
func TestWaitingNot(t *testing.T) {
	var b bytes.Buffer
	NewWaiting(nil, bare(&b), time.Minute).Tried(server, nil)
	s, y := terminal(t, 80)
	NewWaiting(s, bare(&b), time.Minute).Tried(server, nil)
	if b.String()+y.String() != "" {
		t.Errorf("want nothing, got %q and %q", &b, y)
	}
}

// On a terminal one line is as complete as the width allows, and goes away when the target is ready.
func TestWaitingScreen(t *testing.T) {
	for _, c := range []struct {
		columns int
		want    string
	}{
		{200, "waiting: GET http://127.0.0.1:8000/v1/models: connect: dial tcp 127.0.0.1:8000: connect: connection refused, 12s of 15m"},
		{80, "waiting for http://127.0.0.1:8000: connection refused, 12s of 15m"},
		{60, "waiting: connection refused, 12s of 15m"},
		{30, "waiting, 12s of 15m"},
		{12, "waiting, 12"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, y := terminal(t, c.columns)
			w := NewWaiting(s, nil, 15*time.Minute)
			w.Tried(server, errRefused)
			wait(12 * time.Second)
			w.Tried(server, errRefused)
			if got := y.String(); got != c.want+"\n" {
				t.Errorf("%d columns:\nwant %q\n got %q", c.columns, c.want, got)
			}
			w.Tried(server, nil)
			if got := strings.TrimSpace(y.String()); got != "" {
				t.Errorf("want it gone, got %q", got)
			}
		})
	}
}
