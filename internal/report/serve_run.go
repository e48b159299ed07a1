package report

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Limits of a request to the dashboard. A page of 100,000 requests takes a second.
const (
	headerTime  = 10 * time.Second
	answerTime  = 2 * time.Minute
	idleTime    = time.Minute
	headerBytes = 32 << 10
	leaveTime   = 5 * time.Second
)

// Run serves until ctx is canceled. Pages in progress then have leaveTime to finish.
func (d *Dashboard) Run(ctx context.Context, l net.Listener) error {
	s := &http.Server{Handler: d, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: answerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	err := s.Shutdown(leave)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close()
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
