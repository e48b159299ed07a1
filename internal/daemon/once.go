package daemon

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/measure"
	"replayd/internal/web"
)

// Once runs a configuration whose plans end.
type Once struct {
	Options // its Meter is set by Run

	Serve   bool   // serve Config.Web meanwhile
	Version string // on the landing page
	Started func(requests int)
}

// Run returns when the plans are over and every request has ended, or when ctx or hard has stopped them. A page that
// fails meanwhile is an error at the end: the run is worth finishing without it.
func (o Once) Run(ctx, hard context.Context, reg *prometheus.Registry) (err error) {
	process := measure.NewProcess(reg, os.DirFS("/"), time.Now())
	o.Meter = measure.NewMeter(reg)
	ready := func() {}
	if o.Serve {
		p, err := openPage(ctx, web.Options{
			Listen: o.Config.Web.Listen, ConfigFile: o.Config.Web.ConfigFile, Registry: reg, Version: o.Version, Log: o.Log,
		}, func() {})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.close()) }()
		ready = p.Ready
	}
	g, err := Build(ctx, o.Options)
	if err != nil {
		if ctx.Err() != nil {
			return err // it was stopped, whatever the files hold
		}
		return &ErrBuild{err}
	}
	process.Reloaded(nil, time.Now())
	ready()
	o.Started(g.Requests())
	g.Run(ctx, hard)
	return g.Close()
}
