package daemon

import (
	"context"
	"errors"

	"replayd/internal/web"
)

// A page is the HTTP server while it runs.
type page struct {
	*web.Server
	end  context.CancelFunc
	done chan error
}

// openPage binds the address and serves. Scrapes are refused until Ready is called. If the server ends by itself, lost is called.
// The caller must call close.
func openPage(ctx context.Context, o web.Options, lost func()) (*page, error) {
	s, err := web.Listen(o)
	if bad := (*web.ConfigError)(nil); errors.As(err, &bad) {
		return nil, &ErrBuild{err}
	}
	if err != nil {
		return nil, err
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	p := &page{Server: s, end: end, done: make(chan error, 1)}
	go func() { // close waits for it
		err := s.Run(serving)
		if serving.Err() == nil {
			lost()
		}
		p.done <- err
	}()
	return p, nil
}

// close waits for answers in progress. Its error says why the server ended by itself, if it did.
func (p *page) close() error {
	p.end()
	return <-p.done
}
