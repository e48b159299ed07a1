package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/canary"
	"replayd/internal/config"
)

// stateVersion is that of the state file. A file of another version is not read.
const stateVersion = 1

// A stateFile is the content of the file that keeps evidence over a restart of replayd.
type stateFile struct {
	Version     int               `json:"version"`
	Comparisons []savedComparison `json:"comparisons"`
}

// A savedComparison is the evidence of a comparison.
type savedComparison struct {
	Name     string          `json:"name"`
	Identity string          `json:"identity"` // digest of everything that the evidence depends on
	Epoch    time.Time       `json:"epoch"`
	Models   [2]string       `json:"models"` // of baseline and candidate
	Evidence canary.Snapshot `json:"evidence"`
}

// A stateStore reads the file once, and writes it whenever evidence has been added, at most once a minute.
type stateStore struct {
	log    *slog.Logger
	errors prometheus.Counter // nil: not counted

	mu     sync.Mutex
	config config.State
	saved  map[string]savedComparison // from the file, by name
	now    []*comparison
	failed bool // the latest write
}

// use sets where the state is kept. The first call reads the file: damaged, too large or of another version, it is reported and ignored.
func (s *stateStore) use(c config.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.saved == nil
	s.config = c
	if !first {
		return
	}
	s.saved = map[string]savedComparison{}
	if c.Path == "" {
		return
	}
	all, err := readState(c)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.log.Info("there is no state file yet: comparisons begin anew", "path", c.Path)
	case err != nil:
		s.log.Warn("the state file cannot be used: comparisons begin anew, and it is replaced", "path", c.Path, "err", err)
	}
	for _, one := range all {
		s.saved[one.Name] = one
	}
}

func readState(c config.State) ([]savedComparison, error) {
	f, err := os.Open(c.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("want a regular file"), err)
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(c.MaxBytes)+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > int64(c.MaxBytes) {
		return nil, fmt.Errorf("want at most %d bytes (state.max_bytes), got more", int64(c.MaxBytes))
	}
	var version struct{ Version int }
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, err
	}
	if version.Version != stateVersion {
		return nil, fmt.Errorf("version: want %d, got %d", stateVersion, version.Version)
	}
	var file stateFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	return file.Comparisons, nil
}

// restore gives a comparison its evidence from before the start, once, if nothing that it depends on has changed.
func (s *stateStore) restore(c *comparison) {
	s.mu.Lock()
	one, known := s.saved[c.config.Name]
	delete(s.saved, c.config.Name)
	s.mu.Unlock()
	if !known {
		return
	}
	log := s.log.With("comparison", c.config.Name)
	if c.identity == "" || one.Identity != c.identity {
		log.Warn("the kept evidence is of other options, targets or rows: the comparison begins anew")
		return
	}
	v, err := canary.Restore(c.config.Options(), one.Evidence)
	if err != nil {
		log.Warn("the kept evidence is damaged: the comparison begins anew", "err", err)
		return
	}
	c.judging.Lock()
	defer c.judging.Unlock()
	c.judge(v)
	c.epoch = one.Epoch
	for side, model := range one.Models {
		c.seen[side].model = model
	}
	log.Info("the comparison goes on with its kept evidence", "epoch", one.Epoch.UTC().Format(time.RFC3339), "pairs", c.last.Pairs.Judged)
}

// keep sets the comparisons whose evidence is written.
func (s *stateStore) keep(all []*comparison) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = all
}

// run writes the file every minute until ctx is done.
func (s *stateStore) run(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.write()
		case <-ctx.Done():
			return
		}
	}
}

// write replaces the file. A failure is reported when it begins, and counted.
func (s *stateStore) write() {
	s.mu.Lock()
	path, now := s.config.Path, s.now
	s.mu.Unlock()
	if path == "" || len(now) == 0 {
		return
	}
	file := stateFile{Version: stateVersion}
	for _, c := range now {
		if one, ok := c.saved(); ok {
			file.Comparisons = append(file.Comparisons, one)
		}
	}
	err := writeState(path, file)
	s.mu.Lock()
	failed := s.failed
	s.failed = err != nil
	s.mu.Unlock()
	switch {
	case err == nil && failed:
		s.log.Info("the state is written again", "path", path)
	case err != nil && !failed:
		s.log.Error("the state cannot be written: retrying every minute", "path", path, "err", err)
	}
	if err != nil && s.errors != nil {
		s.errors.Inc()
	}
}

// writeState replaces the file as a whole, so that a crash leaves the one before.
func writeState(path string, file stateFile) (err error) {
	text, err := json.Marshal(file)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the first error is what matters
		}
	}()
	if _, err := f.Write(append(text, '\n')); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// saved returns the evidence for the state file. ok is false if it could not be told from that of another configuration.
func (c *comparison) saved() (one savedComparison, ok bool) {
	c.judging.Lock()
	defer c.judging.Unlock()
	return savedComparison{
		Name: c.config.Name, Identity: c.identity, Epoch: c.epoch, Models: [2]string{c.seen[0].model, c.seen[1].model}, Evidence: c.verdict.Snapshot(),
	}, c.identity != ""
}

// identityOf digests everything that the evidence depends on: options, rows, and how both servers are asked. "": it cannot be told.
// Options with their defaults are left out, so that the evidence lasts over an update of replayd that has further options.
func (c *comparison) identityOf(rows string) string {
	parts := [][2]any{{c.config, config.DefaultComparison()}}
	for side, s := range c.servers {
		target := s.config
		target.HTTP = config.DefaultTarget().HTTP // another key is no other server
		parts = append(parts, [2]any{c.workloads[side], config.DefaultWorkload()}, [2]any{target, config.DefaultTarget()})
	}
	given := []any{rows}
	for _, p := range parts {
		one, err := config.Differences(p[0], p[1])
		if err != nil {
			return ""
		}
		given = append(given, one)
	}
	text, err := json.Marshal(given)
	if err != nil || rows == "" {
		return ""
	}
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}
