package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/web"
)

// ServeOptions of Serve.
type ServeOptions struct {
	Config    config.Config
	Version   string
	Log       *slog.Logger
	Started   func(url string) // hears the address when everything runs; nil: nobody
	Observers []replay.Observer
}

// ErrBuild wraps what is wrong with a configuration or with the files that it names.
type ErrBuild struct{ Err error }

func (e *ErrBuild) Error() string { return e.Err.Error() }

// Unwrap gives the faults.
func (e *ErrBuild) Unwrap() error { return e.Err }

// Serve runs a configuration until ctx is cancelled and what is in flight has drained, or hard is cancelled. A
// workload that is over leaves its series on /metrics. The order of the stop is the reverse of the start: requests
// first, the page last, so that a last scrape sees how they ended.
func Serve(ctx, hard context.Context, o ServeOptions) error {
	started := time.Now()
	reg := prometheus.NewRegistry()
	process := measure.NewProcess(reg, os.DirFS("/"), started)
	page, err := web.Listen(web.Options{
		Listen: o.Config.Web.Listen, ConfigFile: o.Config.Web.ConfigFile, Registry: reg, Version: o.Version, Log: o.Log,
	})
	if err != nil {
		return err
	}
	g, err := Build(ctx, Options{
		Config: o.Config, Meter: measure.NewMeter(reg), UserAgent: "replayd/" + o.Version, Log: o.Log, Observers: o.Observers,
		Failed: func(err error) { o.Log.Error("stopped early, everything else goes on", "err", err) },
	})
	if err != nil {
		return errors.Join(&ErrBuild{err}, page.Close())
	}
	process.Reloaded(nil, time.Now())

	serving, endServing := context.WithCancel(context.WithoutCancel(ctx))
	defer endServing()
	work, stop := context.WithCancel(ctx)
	defer stop()
	var pageErr error
	var pageDone, replayDone sync.WaitGroup
	pageDone.Go(func() {
		pageErr = page.Run(serving)
		stop() // a daemon that nobody can scrape has no purpose
	})
	page.Ready(true)
	replayDone.Go(func() { g.Run(work, hard) })
	if o.Started != nil {
		o.Started(page.URL())
	}
	<-work.Done()
	o.Log.Info("stopping: nothing new is sent, requests in flight may end", "drain", o.Config.Drain)
	replayDone.Wait()
	endServing()
	pageDone.Wait()
	return errors.Join(pageErr, g.Close())
}
