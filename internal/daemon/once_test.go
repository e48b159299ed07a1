package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/config"
	"replayd/internal/sim"
)

func TestOnce(t *testing.T) {
	_, url := engine(t, func(o *sim.Options) { o.Faults.Error500 = 1 })
	h, requests, reg := &heard{}, 0, prometheus.NewRegistry()
	o := h.options(conf([]config.Target{target("sim", url)}, once("w", "sim", write(t, "trace.jsonl", rows(5)))))
	err := Once{Options: o, Serve: true, Version: "1.2.3", Started: func(n int) { requests = n }}.Run(t.Context(), t.Context(), reg)
	if err != nil || requests != 5 || h.outcomes["w http_5xx"] != 5 || len(h.failures) != 0 {
		t.Errorf("want 5 of http_5xx, got %d expected, %v, %q, %v", requests, h.outcomes, h.failures, err)
	}
}

// A stop lets what is in flight end, sends nothing of what comes later, and is no error.
func TestOnceStopped(t *testing.T) {
	g := newGate(t)
	h := &heard{}
	w := once("w", "gate", write(t, "trace.jsonl", rows(1)+`{"timestamp": 3600000, "input_length": 5}`))
	w.Prompt.Calibrate = false
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	context.AfterFunc(ctx, func() { close(g.open) })
	go func() {
		<-g.came
		stop()
	}()
	o := h.options(conf([]config.Target{target("gate", g.url)}, w))
	err := Once{Options: o, Started: func(int) {}}.Run(ctx, t.Context(), prometheus.NewRegistry())
	if err != nil || len(h.outcomes) != 1 || h.outcomes["w ok"] != 1 || len(h.drops) != 0 {
		t.Errorf("want one ok and nothing dropped, got %v, %v, %v", h.outcomes, h.drops, err)
	}
}

func TestOnceErrors(t *testing.T) {
	h := &heard{}
	run := func(ctx context.Context, c config.Config) error {
		started := func(int) { t.Error("want nothing started") }
		return Once{Options: h.options(c), Serve: true, Started: started}.Run(ctx, t.Context(), prometheus.NewRegistry())
	}
	var build *ErrBuild
	c := conf([]config.Target{target("t", nobody)}, once("w", "t", filepath.Join(t.TempDir(), "gone.jsonl")))
	if err := run(t.Context(), c); !errors.As(err, &build) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("want a missing trace, got %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := run(stopped, c); errors.As(err, &build) || !errors.Is(err, context.Canceled) {
		t.Errorf("want it stopped, got %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c.Web.Listen = l.Addr().String()
	if err := run(t.Context(), c); errors.As(err, &build) || !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("want the address in use, got %v", err)
	}
}
