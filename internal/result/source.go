package result

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Names of the files in a run's directory that are read back: requests and figures as in AIPerf 0.5, replayd's records,
// and the folder of earlier runs.
const (
	ExportName  = "profile_export.jsonl"
	JSONName    = "profile_export_aiperf.json"
	RecordsName = "records.jsonl"
	BeforeName  = "before"
)

// Limits of the search for runs.
const (
	maxRuns    = 200
	maxFolders = 10_000
	deepest    = 5 // levels of folders below a given path
)

// A Source is a place to read a run from: a folder, or a file of requests.
type Source struct {
	Name  string
	Dir   string   // folder of the settings
	Files []string // of requests; several files are shards of one run
}

// FindRuns finds runs. A path can be a file of requests, the folder of one run, or a folder with such folders below it.
// A folder with requests of its own is one run. As in AIPerf, FindRuns does not search below that folder, unless within
// is true. A folder with shard*.jsonl is one run of several shards. A folder named before is skipped, unless it is one
// of paths or has requests of its own. The name of a run is the last parts of its path, as many as tell the runs apart.
func FindRuns(paths []string, within bool) ([]Source, error) {
	f := finder{within: within, seen: map[string]bool{}}
	for _, path := range paths {
		n := len(f.found)
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			f.add(Source{Dir: filepath.Dir(path), Files: []string{path}}, path)
			continue
		}
		if err := f.walk(path, 0); err != nil {
			return nil, err
		}
		if len(f.found) == n && !f.seen[filepath.Clean(path)] {
			return nil, fmt.Errorf("%s: want a folder with %s, %s or shard*.jsonl in it or below it, found none", path, ExportName, RecordsName)
		}
	}
	nameApart(f.found)
	return f.found, nil
}

type finder struct {
	within  bool
	found   []Source // named by their paths
	seen    map[string]bool
	folders int
}

func (f *finder) add(s Source, path string) {
	if path = filepath.Clean(path); !f.seen[path] {
		f.seen[path], s.Name = true, path
		f.found = append(f.found, s)
	}
}

func (f *finder) walk(dir string, depth int) error {
	if f.folders++; f.folders > maxFolders || len(f.found) >= maxRuns {
		return fmt.Errorf("%s: want at most %d runs in %d folders, found more: name fewer", dir, maxRuns, maxFolders)
	}
	files, err := requestFiles(dir)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		f.add(Source{Dir: dir, Files: files}, dir)
		if !f.within {
			return nil
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || depth == deepest {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if e.Name() == BeforeName { // has earlier runs, unless it is a run itself
			if files, err := requestFiles(path); err != nil || len(files) == 0 {
				continue
			}
		}
		if err := f.walk(path, depth+1); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// requestFiles returns a folder's files of requests: a single file, or the files of shards.
func requestFiles(dir string) ([]string, error) {
	for _, name := range []string{ExportName, RecordsName} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return []string{path}, nil
		}
	}
	shards, err := fs.Glob(os.DirFS(dir), "shard*.jsonl") // in lexical order
	for i, name := range shards {
		shards[i] = filepath.Join(dir, name)
	}
	return shards, err
}

// nameApart names each source by the last parts of its path, with as many parts as all names need to differ.
func nameApart(found []Source) {
	paths := slices.Clone(found)
	for parts := 1; ; parts++ {
		names, longer := map[string]bool{}, false
		for i, s := range paths {
			found[i].Name = lastParts(s.Name, parts)
			names[found[i].Name] = true
			longer = longer || found[i].Name != lastParts(s.Name, parts+1)
		}
		if len(names) == len(paths) || !longer {
			return
		}
	}
}

// lastParts returns the last n parts of a path, without the extensions .gz and .jsonl.
func lastParts(path string, n int) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	all := strings.Split(filepath.ToSlash(path), "/")
	name := strings.Join(all[max(0, len(all)-n):], "/")
	return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".jsonl")
}

// Read reads the run, or all runs in a file of records. It reads an incomplete file as far as possible, and Partial
// says so. Without a file of settings beside the requests, the settings stay empty. Read fails if a file of requests
// cannot be read or if the shards do not belong together.
func (s Source) Read() ([]Run, error) {
	var shards []Run
	for _, path := range s.Files {
		runs, err := readRequests(path)
		if err != nil {
			return nil, err
		}
		if len(s.Files) == 1 {
			return s.named(runs), nil
		}
		if len(runs) > 1 {
			return nil, fmt.Errorf("%s: %s: want one shard of a run, got the records of %d runs", s.Name, path, len(runs))
		}
		runs[0].Name = path
		if s.apart() { // each shard has settings of its own
			runs[0].adoptFigures(readFigures(filepath.Dir(path)))
			runs[0].readSessions(filepath.Dir(path))
		}
		shards = append(shards, runs[0])
	}
	run, err := MergeShards(shards)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	run.Name = s.Name
	if read := readFigures(s.Dir); read != nil && !s.apart() {
		read.Ledger = nil // it is the ledger of one shard
		run.adoptFigures(read)
	}
	return []Run{run}, nil
}

// named gives the runs of one file their names and settings. If there are several runs, the settings beside the file
// belong to the run with the same ledger.
func (s Source) named(runs []Run) []Run {
	read := readFigures(s.Dir)
	for i := range runs {
		r := &runs[i]
		r.Name = s.Name
		if len(runs) > 1 {
			r.Name += fmt.Sprintf(", run %d", i+1)
		}
		if len(runs) == 1 || read != nil && equal(read.Ledger, r.Ledger) {
			r.adoptFigures(read)
			r.readSessions(s.Dir)
		}
		if missing := missingShards(r.LedgerLines); missing != "" {
			r.Partial = append(r.Partial, "a shard alone; not in these files: "+missing)
		}
	}
	return runs
}

// apart reports whether each file is in a folder of its own.
func (s Source) apart() bool {
	folders := map[string]bool{}
	for _, path := range s.Files {
		folders[filepath.Dir(path)] = true
	}
	return len(folders) > 1 && len(folders) == len(s.Files)
}

// readFigures reads the file of figures in dir, or returns nil if there is none. If the file cannot be read, the run
// has the error in Partial.
func readFigures(dir string) *Run {
	f, err := os.Open(filepath.Join(dir, JSONName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var run Run
	if err == nil {
		defer f.Close()
		run, err = ReadJSON(f, f.Name())
	}
	if err != nil {
		run.Partial = []string{err.Error()}
	}
	return &run
}

// adoptFigures adopts Settings, Cut, Cache, Reading and Partial of the file of figures. It adopts the ledger only if
// the run has none.
func (r *Run) adoptFigures(read *Run) {
	if read == nil {
		return
	}
	read.Settings.Streamed = r.Settings.Streamed // as observed, not as requested
	r.Settings, r.Cut, r.Cache, r.Reading = read.Settings, read.Cut, read.Cache, read.Reading
	r.Partial = append(r.Partial, read.Partial...)
	if r.Ledger == nil && read.Ledger != nil {
		r.Ledger = read.Ledger
		r.checkLedger(JSONName)
	}
}

func readRequests(path string) ([]Run, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return ReadExport(in, path)
}

// Shards returns one source for several shards of one run, with the name and the folder of the first.
func Shards(sources []Source) Source {
	all := Source{Name: sources[0].Name, Dir: sources[0].Dir}
	for _, s := range sources {
		all.Files = append(all.Files, s.Files...)
	}
	return all
}

// Stamp returns a text that changes when the run's files change.
func (s Source) Stamp() string {
	text := ""
	for _, path := range s.Files {
		if info, err := os.Stat(path); err == nil {
			text += fmt.Sprintf("%d %s;", info.Size(), info.ModTime().Format(time.RFC3339Nano))
		}
	}
	return text
}
