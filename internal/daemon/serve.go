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
func Serve(ctx, hard context.Context, o ServeOptions) (err error) {
	reg := prometheus.NewRegistry()
	process := measure.NewProcess(reg, os.DirFS("/"), time.Now())
	work, stop := context.WithCancel(ctx)
	defer stop()
	detach := context.AfterFunc(hard, stop)
	defer detach()
	p, err := openPage(ctx, web.Options{
		Listen: o.Config.Web.Listen, ConfigFile: o.Config.Web.ConfigFile, Registry: reg, Version: o.Version, Log: o.Log,
	}, stop) // a daemon that nobody can scrape has no purpose
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	g, err := Build(work, Options{
		Config: o.Config, Meter: measure.NewMeter(reg), UserAgent: "replayd/" + o.Version, Log: o.Log, Observers: o.Observers,
		Failed: func(err error) { o.Log.Error("stopped early, everything else goes on", "err", err) },
	})
	if err != nil {
		if work.Err() != nil {
			return nil // it was stopped, whatever the files hold
		}
		return &ErrBuild{err}
	}
	process.Reloaded(nil, time.Now())
	p.Ready()
	var replaying sync.WaitGroup
	replaying.Go(func() { g.Run(work, hard) })
	if o.Started != nil {
		o.Started(p.URL())
	}
	<-work.Done()
	o.Log.Info("stopping: nothing new is sent, requests in flight may end", "drain", o.Config.Drain)
	replaying.Wait()
	return g.Close()
}
