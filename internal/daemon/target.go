package daemon

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"replayd/internal/config"
	"replayd/internal/metrics"
	"replayd/internal/openai"
	"replayd/internal/replay"
)

// A server is a target with the watch over it. Several generations and their workloads may share one; it ends with the
// last of them.
type server struct {
	config config.Target
	probe  bool
	client *openai.Client
	watch  *replay.Target
	shown  *metrics.Target
	tokens *tokens       // nil: texts are not counted
	lost   chan struct{} // closed when it cannot be used and asking again does not mend that

	mu    sync.Mutex
	users int                // generations that list it, and workloads
	end   context.CancelFunc // nil before the first workload
	err   error              // why it is lost
}

// requestsOf is a target as far as requests to it go; what it says of itself is a scraper's.
func requestsOf(t config.Target) config.Target {
	t.Metrics = config.Metrics{}
	return t
}

// addServer takes over the server of the generation before, when nothing about it changed, or makes one. Probe says that the
// tokens of its chat template are to be found.
func (g *Generation) addServer(at string, t config.Target, probe bool, old *Generation) config.Faults {
	tokens, err := g.openTokenizer(t)
	if err != nil {
		return faultsAt(at+".tokenizer", err)
	}
	if old != nil {
		s := old.servers[t.Name]
		if s != nil && s.probe == probe && reflect.DeepEqual(s.config, requestsOf(t)) && s.tokens.same(tokens) && s.share() {
			g.servers[t.Name] = s
			return nil
		}
	}
	c, err := openai.New(openai.Target{
		Name: t.Name, URL: t.URL, API: openai.API(t.API), Model: t.Model, HTTP: t.HTTP.HTTPClientConfig,
		ExtraBody: t.ExtraBody, Output: openai.OutputMode(t.Output), Idle: time.Duration(t.Idle), UserAgent: g.options.UserAgent, Dial: g.options.Dial,
		Timeouts: openai.Timeouts{
			Connect: time.Duration(t.Timeouts.Connect), FirstToken: time.Duration(t.Timeouts.FirstToken),
			Stall: time.Duration(t.Timeouts.Stall), Total: time.Duration(t.Timeouts.Total),
		},
	})
	if err != nil {
		return faultsOf(at, errors.New(strings.TrimPrefix(err.Error(), "target "+t.Name+": ")), nil)
	}
	s := &server{config: requestsOf(t), probe: probe, client: c, tokens: tokens, lost: make(chan struct{}), users: 1}
	s.watch = replay.NewTarget(&openai.Probe{
		Client: c, Template: probe, Patient: g.options.Patient, Named: func(model string) { s.shown.Serves(model) }, Log: g.options.Log,
	})
	s.shown = g.options.Meter.Target(t.Name, t.API, s.watch.Reached)
	g.servers[t.Name] = s
	return nil
}

// share lets one more generation list the server, unless it is lost. It keeps it until its release.
func (s *server) share() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	s.users++
	return true
}

// keepServer keeps a server until its release; the first to hold it starts the watch.
func (g *Generation) keepServer(ctx context.Context, s *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
	if s.end != nil {
		return
	}
	failed := g.options.Failed // not g, which would stay in memory
	ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	g.shared.running.Go(func() {
		if err := s.watch.Run(ctx); err != nil {
			err = fmt.Errorf("target %s: %w", s.config.Name, err)
			s.mu.Lock()
			s.err = err
			s.mu.Unlock()
			close(s.lost)
			failed(err)
			<-ctx.Done()
		}
		s.client.Close()
	})
}

func (s *server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	switch {
	case s.users > 0:
	case s.end != nil:
		s.end()
	default:
		s.client.Close()
	}
}

// fault is why the server is lost.
func (s *server) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
