package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/comparison"
	"replayd/internal/config"
)

// A reload moves the state at once, and frees the file before. It is refused, and nothing changes, where another process has the new one.
func TestReloadMovesTheState(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	free := func(name string) bool {
		s := comparison.NewStore(slog.New(slog.DiscardHandler), nil)
		c, err := s.Claim(t.Context(), at(name), 0)
		s.Release(c)
		return err == nil
	}
	synctest.Test(t, func(t *testing.T) {
		w, _, c := twoServers(t, 1)
		w.dir = dir
		c.Workloads[0].Trace.Path = w.put(paced(20, 100))
		c.State.Path = at("a")
		w.start(c, true)
		pass(30 * time.Second)
		other := comparison.NewStore(slog.New(slog.DiscardHandler), nil)
		b, err := other.Claim(t.Context(), at("b"), 0)
		if err != nil {
			t.Fatal(err)
		}
		c.State.Path = at("b")
		if _, err := w.g.Next(t.Context(), c); err == nil || !strings.Contains(err.Error(), "that no other replayd uses") {
			t.Errorf("got %v", err)
		}
		other.Release(b)
		if free("a") || !free("b") {
			t.Error("want the refused reload to keep a, and no other")
		}
		overwrite(t, at("b"), []byte(`{"version":9,"comparisons":[]}`))
		w.reload(c)
		if !free("a") || free("b") {
			t.Error("want a free and b taken")
		}
		for name, want := range map[string]string{"b": `"name":"`, "b" + ".unreadable": `{"version":9,`} {
			if text, err := os.ReadFile(at(name)); err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%s: want %s, got %.80s, %v", name, want, text, err)
			}
		}
		c.Drain++
		w.reload(c)
		if free("b") {
			t.Error("want b kept over a reload that does not change it")
		}
		c.State = config.State{}
		w.reload(c)
		if !free("b") {
			t.Error("want b free")
		}
		c.State = config.State{Path: at("a")}
		w.reload(c)
		w.end()
		if text, err := os.ReadFile(at("a")); err != nil || !strings.Contains(string(text), `"name":"`) || !free("a") {
			t.Errorf("at the end: %.80s, %v", text, err)
		}
	})
}
