package daemon

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"replayd/internal/comparison"
	"replayd/internal/config"
	"replayd/internal/fault"
	"replayd/internal/file"
)

// A written file is one that replayd writes, with those whose names begin with its name.
type written struct {
	key, path string
	suffixes  *regexp.Regexp // what follows the path in the names of the others
}

var (
	stateSuffixes  = regexp.MustCompile(`^(\.lock|\.unreadable(\.[0-9]+)?)?$`)
	recordSuffixes = regexp.MustCompile(`^(\.[0-9]+(\.gz)?|\.gz\.tmp)?$`)
)

// checkWritten refuses to write over what the configuration names, and a state that is another program's file.
func (g *Generation) checkWritten(old *Generation) (faults fault.List) {
	c := &g.options.Config
	state, records := written{"state.path", c.State.Path, stateSuffixes}, written{
		"records.path", c.Records.Path,
		recordSuffixes,
	}
	faults = append(state.checkOwn(c.Files()), records.checkOwn(c.Files())...)
	if c.State.Path == "" || len(faults) > 0 || old.options.Config.State.Path == c.State.Path {
		return faults // of a state that stays, each write looks at the file
	}
	broken, err := comparison.CheckFile(c.State.Path)
	if broken != nil && g.checks {
		g.options.Log.Warn("the state file cannot be used: serve keeps it beside, and comparisons begin anew",
			"path", c.State.Path, "err", broken)
	}
	return fault.At("state.path", err)
}

// checkOwn refuses a path that another key has, too.
func (w written) checkOwn(all []config.NamedFile) (faults fault.List) {
	if w.path == "" {
		return nil
	}
	for _, f := range all {
		if f.Key == w.key || f.Key == "state.path" || !w.meets(f) { // a state that meets the records has the fault
			continue
		}
		faults.Add(w.key, "%s: want a file of its own, got that of %s, %s",
			w.path, cmp.Or(f.Key, "the configuration"), f.Path)
		return faults
	}
	return nil
}

// meets reports whether the file, or one beside it, is another file of the configuration or in its folder, or a link.
func (w written) meets(other config.NamedFile) bool {
	own, path := file.Real(w.path), file.Real(other.Path)
	if rest, ok := strings.CutPrefix(path, own); ok && w.suffixes.MatchString(rest) {
		return true
	}
	if rest, ok := strings.CutPrefix(own, path); ok && other.Key == "records.path" && recordSuffixes.MatchString(rest) {
		return true
	}
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if info.IsDir() && filepath.Dir(own) == path {
		return true
	}
	mine, err := os.Stat(own)
	if err != nil || !mine.Mode().IsRegular() {
		return false
	}
	if !info.IsDir() {
		return os.SameFile(mine, info)
	}
	entries, _ := os.ReadDir(path) // the fault is reported where it is opened
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(path, e.Name())); err == nil && os.SameFile(mine, info) {
			return true
		}
	}
	return false
}
