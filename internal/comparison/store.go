package comparison

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/canary"
)

// A Store keeps the evidence of comparisons in the state file. It reads the file once. It writes the file every
// minute, after a restart of evidence, where a reload moves it, and at the end.
type Store struct {
	reporter

	// held while a file is written, so that the lock of a file that is left is freed after its last write
	writing sync.Mutex
	lost    bool // the latest write has failed

	mu      sync.Mutex
	claimed *Claim                     // nil: nothing is kept
	left    []*Claim                   // those before, whose locks are not freed yet
	saved   map[string]savedComparison // from the file at the start, by name
	now     []*Comparison
}

// NewStore returns a store without a file. failures counts errors of the file; nil: not counted.
func NewStore(log *slog.Logger, failures prometheus.Counter) *Store {
	return &Store{reporter: reporter{log, failures}}
}

// claimEvery is how often a start looks whether the process before has freed the state.
const claimEvery = 250 * time.Millisecond

// Claim takes the state file at a path; nil: there is no path. While another process has it, as the one before does
// while it drains, Claim waits until then, for the time given, or until ctx ends.
func (s *Store) Claim(ctx context.Context, path string, wait time.Duration) (*Claim, error) {
	if path == "" {
		return nil, nil
	}
	deadline := time.Now().Add(wait)
	for logged := false; ; {
		c, err := claim(path, s.current(), s.reporter)
		locked, ok := errors.AsType[*lockedError](err)
		if !ok || !time.Now().Before(deadline) {
			return c, err
		}
		if !logged {
			s.log.Warn("another process uses the state file: waiting for its end", "path", locked.path, "by", locked.by,
				"at_most", wait)
			logged = true
		}
		select {
		case <-time.After(min(claimEvery, time.Until(deadline))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Release frees a claim that is not used, unless the store has its lock.
func (s *Store) Release(c *Claim) {
	if now := s.current(); c != nil && (now == nil || now.lock != c.lock) {
		c.lock.release()
	}
}

// current returns where the state is kept.
func (s *Store) current() *Claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimed
}

// Use sets where the state is kept; nil: nowhere. The first call sets what comparisons go on from.
func (s *Store) Use(c *Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.claimed; old != nil && (c == nil || c.lock != old.lock) {
		s.left = append(s.left, old)
	}
	s.claimed = c
	if s.saved != nil {
		return
	}
	s.saved = map[string]savedComparison{}
	if c != nil {
		for _, one := range c.saved {
			s.saved[one.Name] = one
		}
	}
}

// Settle writes the state where a reload has moved it, and frees the files before.
func (s *Store) Settle() {
	s.mu.Lock()
	left := s.left
	s.left = nil
	s.mu.Unlock()
	if len(left) == 0 {
		return
	}
	s.Write()
	s.writing.Lock()
	defer s.writing.Unlock()
	for _, c := range left {
		c.lock.release()
	}
}

// Close writes the state a last time, and frees its file.
func (s *Store) Close() {
	s.Write()
	s.Use(nil)
	s.Settle()
}

// Restore gives a comparison its evidence from before the start, once, if nothing that it depends on has changed. rows
// is the digest of the rows. It is called before Run.
func (s *Store) Restore(c *Comparison, rows string) {
	c.identity = c.identityOf(rows)
	name := c.options.Name
	s.mu.Lock()
	one, known := s.saved[name]
	delete(s.saved, name)
	s.mu.Unlock()
	if !known {
		return
	}
	log := s.log.With("comparison", name)
	if c.identity == "" || one.Identity != c.identity {
		log.Warn("the kept evidence is of other options, rules, targets or rows: the comparison begins anew")
		return
	}
	v, err := canary.Restore(c.options.Options, one.Evidence)
	if err != nil {
		s.saveDamaged(one, err)
		return
	}
	c.judging.Lock()
	defer c.judging.Unlock()
	c.epoch, c.epochs, c.version = one.Epoch, one.Epochs, one.Version
	c.use(v)
	for side, model := range one.Models {
		c.seen[side].Model, c.seen[side].Pods = model, one.Pods[side]
	}
	log.Info("the comparison goes on with its kept evidence", "epoch", one.Epoch.UTC().Format(time.RFC3339),
		"pairs", c.Status().Judgment.Pairs.Judged)
}

// saveDamaged keeps evidence that cannot be used beside the file, which is replaced soon.
func (s *Store) saveDamaged(one savedComparison, damage error) {
	what := "the kept evidence is damaged: the comparison begins anew"
	claimed := s.current()
	if claimed == nil {
		return
	}
	name, err := writeAside(claimed.path, one)
	if err != nil {
		damage = errors.Join(damage, err)
	} else {
		what += ", and it is kept as " + name
	}
	s.failed(what, claimed.configured, fmt.Errorf("comparison %s: %w", one.Name, damage))
}

// Keep sets the comparisons whose evidence is written.
func (s *Store) Keep(all []*Comparison) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = all
}

// Run writes the file every minute until ctx is done.
func (s *Store) Run(ctx context.Context) {
	tick := time.Tick(time.Minute)
	for {
		select {
		case <-tick:
			s.Write()
		case <-ctx.Done():
			return
		}
	}
}

// Write replaces the file. A failure is reported when it begins, and counted.
func (s *Store) Write() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	claimed, now := s.claimed, s.now
	s.mu.Unlock()
	if claimed == nil || len(now) == 0 {
		return
	}
	state := stateFile{Version: stateVersion}
	for _, c := range now {
		if one, ok := c.saved(); ok {
			text, err := json.Marshal(one)
			if err != nil {
				s.log.Error("the evidence cannot be written", "comparison", one.Name, "err", err)
				continue
			}
			state.Comparisons = append(state.Comparisons, text)
		}
	}
	err := claimed.write(state)
	switch {
	case err == nil && s.lost:
		s.log.Info("the state is written again", "path", claimed.path)
	case err != nil && !s.lost:
		s.log.Error("the state cannot be written: retrying every minute", "path", claimed.path, "err", err)
	}
	if s.lost = err != nil; s.lost {
		s.count()
	}
}

// savedWithin is how long a write waits for a comparison that is judging.
const savedWithin = 500 * time.Millisecond

// saved returns the evidence for the state file. ok is false if it could not be told from that of others.
func (c *Comparison) saved() (one savedComparison, ok bool) {
	if !c.judging.lockWithin(savedWithin) { // it is stuck: the evidence of others must not be lost for that
		if kept := c.kept.Load(); kept != nil {
			return *kept, true
		}
		return one, false
	}
	defer c.judging.Unlock()
	one = savedComparison{
		Name: c.options.Name, Identity: c.identity, Epoch: c.epoch, Epochs: c.epochs, Version: c.version,
		Models: [2]string{c.seen[0].Model, c.seen[1].Model}, Pods: [2][]string{c.seen[0].Pods, c.seen[1].Pods}, Evidence: c.verdict.Snapshot(),
	}
	if c.identity == "" {
		return one, false
	}
	c.kept.Store(&one)
	return one, true
}
