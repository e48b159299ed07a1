package daemon

import (
	"context"
	"errors"
	"os"
	"sync"
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

// Run returns when the plans are over and every request has ended, or when ctx or hard has stopped them.
func (o Once) Run(ctx, hard context.Context, reg *prometheus.Registry) (err error) {
	process := measure.NewProcess(reg, os.DirFS("/"), time.Now())
	o.Meter = measure.NewMeter(reg)
	var page *web.Server
	if o.Serve {
		page, err = web.Listen(web.Options{
			Listen: o.Config.Web.Listen, ConfigFile: o.Config.Web.ConfigFile, Registry: reg, Version: o.Version, Log: o.Log,
		})
		if err != nil {
			return err
		}
	}
	g, err := Build(ctx, o.Options)
	if err != nil {
		if page != nil {
			err = errors.Join(err, page.Close())
		}
		return &ErrBuild{err}
	}
	process.Reloaded(nil, time.Now())
	var serving sync.WaitGroup
	pageCtx, endPage := context.WithCancel(context.WithoutCancel(ctx))
	defer endPage()
	var pageErr error
	if page != nil {
		page.Ready(true)
		serving.Go(func() { pageErr = page.Run(pageCtx) })
	}
	o.Started(g.Requests())
	g.Run(ctx, hard)
	endPage()
	serving.Wait()
	return errors.Join(pageErr, g.Close())
}
