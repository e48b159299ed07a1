// Package export writes the files and tables of a run as AIPerf, vLLM's benchmarks and spreadsheets have them.
package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"replayd/internal/result"
)

// Names of the files in an artifact directory, as AIPerf 0.5 has them, beside those that package result reads; the last three are
// ours.
const (
	CSVName           = "profile_export_aiperf.csv"
	SlicesCSVName     = "profile_export_aiperf_timeslices.csv"
	SlicesJSONName    = "profile_export_aiperf_timeslices.json"
	ServerMetricsName = "server_metrics_export.json"
	XLSXName          = "result.xlsx"
	PromptsName       = "prompts.jsonl"
	PageName          = "report.html"
)

// ours are all the files that a run of replayd or AIPerf leaves in a directory. Nothing else there is ever touched.
var ours = []string{
	result.ExportName, CSVName, result.JSONName, SlicesCSVName, SlicesJSONName, ServerMetricsName, XLSXName, PromptsName, result.RecordsName, PageName,
	"inputs.json", "outputs.json", "profile_export_raw.jsonl", "profile_export_records.csv", "gpu_telemetry_export.jsonl",
	"server_metrics_export.csv", "server_metrics_export.jsonl", "server_metrics_export.parquet", "logs/aiperf.log",
}

// An Artifacts is the directory that a run writes its files into.
type Artifacts struct {
	Dir   string
	Moved string // where the files of the run before are now; "" when there were none
}

// OpenArtifacts makes a directory for the files of a run and sees that files can be made there. What an earlier run left moves to
// before/TIME first, TIME being now: so a directory holds the files of one run, or of one sweep, only. Nothing that neither replayd nor AIPerf
// writes is touched.
func OpenArtifacts(dir string, now time.Time) (Artifacts, error) {
	a := Artifacts{Dir: dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return a, fmt.Errorf("artifact directory: %w", err)
	}
	probe, err := os.CreateTemp(dir, ".replayd-*")
	if err != nil {
		return a, fmt.Errorf("artifact directory: %s: want to write there: %w", dir, err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return a, fmt.Errorf("artifact directory: %w", err)
	}
	if a.Moved, err = moveBefore(dir, now); err != nil {
		return a, fmt.Errorf("artifact directory: files of an earlier run: %w", err)
	}
	return a, nil
}

// PutBack returns what an earlier run left to its place, for a run that sent nothing: the earlier files are worth more.
func (a Artifacts) PutBack() error {
	if a.Moved == "" {
		return nil
	}
	err := filepath.WalkDir(a.Moved, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(a.Moved, path)
		if err != nil {
			return err
		}
		return move(path, a.Path(name))
	})
	if err == nil {
		err = os.RemoveAll(a.Moved) // folders that are empty now
	}
	return err
}

// sweepFolder is where one run of a sweep lies in the sweep's own folder.
var sweepFolder = regexp.MustCompile(`^concurrency-[1-9][0-9]*$`)

// leftBehind are the files of an earlier run in a directory, and the folders of an earlier sweep.
func leftBehind(dir string) (names []string, err error) {
	for _, name := range ours {
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil && !info.IsDir() {
			names = append(names, name)
		}
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() || !sweepFolder.MatchString(e.Name()) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, e.Name(), result.ExportName)); err == nil {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// moveBefore moves the files of an earlier run, or a whole sweep, and says where to.
func moveBefore(dir string, now time.Time) (to string, err error) {
	names, err := leftBehind(dir)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if to == "" {
			if to, err = beforeDir(dir, now); err != nil {
				return "", err
			}
		}
		if err := move(filepath.Join(dir, filepath.FromSlash(name)), filepath.Join(to, filepath.FromSlash(name))); err != nil {
			return to, err
		}
	}
	return to, nil
}

// move makes the folder that a file or folder moves to.
func move(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// beforeDir makes a directory that was not there before.
func beforeDir(dir string, now time.Time) (string, error) {
	if err := os.MkdirAll(filepath.Join(dir, result.BeforeName), 0o755); err != nil {
		return "", err
	}
	name := now.UTC().Format("20060102T150405Z")
	for i := 1; ; i++ {
		path := filepath.Join(dir, result.BeforeName, name)
		if i > 1 {
			path += "-" + strconv.Itoa(i)
		}
		err := os.Mkdir(path, 0o755)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return path, err
		}
	}
}

// Path is where a file of the directory lies.
func (a Artifacts) Path(name string) string { return filepath.Join(a.Dir, name) }

// Write makes a file of the directory, whole or not at all: under another name first.
func (a Artifacts) Write(name string, write func(*os.File) error) (err error) {
	f, err := os.CreateTemp(a.Dir, "."+name+"-*")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", name, errors.Join(err, os.Remove(f.Name())))
		}
	}()
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), a.Path(name))
}
