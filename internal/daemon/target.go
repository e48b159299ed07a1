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

// A server is a target and its probe. Several generations and their workloads can share a server. It ends with the last of
// them.
type server struct {
	config config.Target
	probe  bool
	client *openai.Client
	watch  *replay.Target
	shown  *metrics.Target
	tokens *tokens       // nil: texts are not counted
	lost   chan struct{} // closed when the target cannot be used and a retry would not help

	mu    sync.Mutex
	users int                // generations and workloads that keep it
	end   context.CancelFunc // nil before the first workload
	err   error              // why the server is lost
}

// requestsOf returns the part of a target that requests depend on. Its metrics belong to a scraper.
func requestsOf(t config.Target) config.Target {
	t.Metrics = config.Metrics{}
	return t
}

// addServer takes over the server of the generation before if nothing about it changed, or makes one. probe says whether to
// measure the tokens of its chat template.
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
		PerChunk: t.PerChunk, ReplicaHeader: t.Replica,
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

// share keeps the server for one more generation until its release. It returns false if the server is lost.
func (s *server) share() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	s.users++
	return true
}

// keepServer keeps a server until its release. The first to keep it starts the probe.
func (g *Generation) keepServer(ctx context.Context, s *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
	if s.end != nil {
		return
	}
	failed := g.options.Failed // a copy, so that g is not kept in memory
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

// fault returns why the server is lost.
func (s *server) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
