package daemon

import (
	"context"
	"errors"

	"replayd/internal/web"
)

// A page is the HTTP side while it is served.
type page struct {
	*web.Server
	end  context.CancelFunc
	done chan error
}

// openPage binds the address and serves; scrapes are refused until the server is told that it is ready. lost is called
// when it ends without having been told to, and close must be.
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

// close lets answers under way end and says why the page ended earlier, if it did.
func (p *page) close() error {
	p.end()
	return <-p.done
}
