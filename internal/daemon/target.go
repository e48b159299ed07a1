package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"replayd/internal/config"
	"replayd/internal/file"
	"replayd/internal/metrics"
	"replayd/internal/openai"
	"replayd/internal/replay"
	"replayd/internal/token"
)

// A server is a target and its probe. It ends with the last of the generations and workloads that share it.
type server struct {
	config config.Target
	probe  bool
	client *openai.Client
	watch  *replay.Target
	shown  *metrics.Target
	lost   chan struct{} // closed when the target cannot be used and a retry would not help

	tokenizer *token.Tokenizer  // nil: texts are not counted
	digest    [sha256.Size]byte // of its file

	mu    sync.Mutex
	users int                // generations and workloads that use it
	end   context.CancelFunc // nil before the first workload
	err   error              // why the server is lost
}

// requestsOf returns the part of a target that requests depend on. Its metrics pages belong to scrapers.
func requestsOf(t config.Target) config.Target {
	t.Metrics, t.Router = config.Metrics{}, config.Metrics{}
	return t
}

// places returns the host and the port of each server behind the target, before any name is looked up.
func (s *server) places() [][2]string {
	if name, port, named := s.config.LookupName(); named {
		return [][2]string{{strings.ToLower(strings.TrimSuffix(name, ".")), port}}
	}
	var all [][2]string
	for _, address := range s.client.Pods() {
		host, port := openai.HostPort(address)
		all = append(all, [2]string{host, port})
	}
	return all
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

// use shares a server until its release. The first user starts the probe.
func (s *server) use(ctx context.Context, running *sync.WaitGroup, failed func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
	if s.end != nil {
		return
	}
	ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	running.Go(func() {
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

// openTokenizer opens the tokenizer of a target; nil: none. The digest of its file shows whether the file was
// replaced. The name of a model family with an exact word list needs no file.
func (o *Options) openTokenizer(t config.Target) (found *token.Tokenizer, digest [sha256.Size]byte, err error) {
	if t.Tokenizer == "" {
		return nil, digest, nil
	}
	found, err = token.Open(t.Tokenizer)
	list, known := token.Family(t.Tokenizer)
	switch {
	case err == nil:
		if digest, err = file.Digest(found.Path(), math.MaxInt64); err == nil {
			o.Log.Info("tokenizer found", "target", t.Name, "file", found.Path(), "kind", found.Kind())
		}
	case errors.Is(err, token.ErrNotFound) && known:
		o.Log.Info("tokenizer not found: not needed for lengths, the word list is exact for the model",
			"target", t.Name, "name", t.Tokenizer, "words", list)
		err = nil
	}
	return found, digest, err
}
