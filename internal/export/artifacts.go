// Package export writes the files and tables of a run in the formats of AIPerf, vLLM's benchmarks and spreadsheets.
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

	"replayd/internal/file"
	"replayd/internal/result"
)

// Names of the files in an artifact directory, except those that package result reads. The last three names are
// replayd's own; the others are AIPerf 0.5's.
const (
	CSVName           = "profile_export_aiperf.csv"
	SlicesCSVName     = "profile_export_aiperf_timeslices.csv"
	SlicesJSONName    = "profile_export_aiperf_timeslices.json"
	ServerMetricsName = "server_metrics_export.json"
	XLSXName          = "result.xlsx"
	PromptsName       = "prompts.jsonl"
	PageName          = "report.html"
)

// ours lists all files that a run of replayd or AIPerf leaves in a directory. Replayd touches no other file there.
var ours = []string{
	result.ExportName, result.SessionsName, CSVName, result.JSONName, SlicesCSVName, SlicesJSONName, ServerMetricsName, XLSXName, PromptsName, result.RecordsName, PageName,
	"inputs.json", "outputs.json", "profile_export_raw.jsonl", "profile_export_records.csv", "gpu_telemetry_export.jsonl",
	"server_metrics_export.csv", "server_metrics_export.jsonl", "server_metrics_export.parquet", "logs/aiperf.log",
}

// An Artifacts is the directory that a run writes its files into.
type Artifacts struct {
	Dir   string
	Moved string // where the files of the earlier run are; "" if there were none
}

// OpenArtifacts creates the directory for the files of a run and checks that it is
// writable. Files of an earlier run move to before/TIME, where TIME is now, so
// that a directory holds the files of only one run or one sweep. Other files stay.
func OpenArtifacts(dir string, now time.Time) (Artifacts, error) {
	a := Artifacts{Dir: dir}
	if err := file.MkdirAll(dir); err != nil {
		return a, fmt.Errorf("artifact directory: %w", err)
	}
	err := file.Writable(dir)
	if err != nil {
		return a, fmt.Errorf("artifact directory: %s: want to write there: %w", dir, err)
	}
	if a.Moved, err = moveBefore(dir, now); err != nil {
		return a, fmt.Errorf("artifact directory: files of an earlier run: %w", err)
	}
	return a, nil
}

// PutBack moves the files of the earlier run back, for a run that sent nothing: the earlier files are worth more.
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
		err = os.RemoveAll(a.Moved) // the folders are empty
	}
	return err
}

// sweepFolder matches the folder of one run inside the folder of a sweep.
var sweepFolder = regexp.MustCompile(`^concurrency-[1-9][0-9]*$`)

// leftBehind lists the files of an earlier run in a directory, and the folders of an earlier sweep.
func leftBehind(dir string) (names []string, err error) {
	for _, name := range ours {
		info, err := os.Lstat(filepath.Join(dir, name))
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

// moveBefore moves the files of an earlier run, or a whole sweep, and returns the new folder.
func moveBefore(dir string, now time.Time) (to string, err error) {
	names, err := leftBehind(dir)
	if err != nil || len(names) == 0 {
		return "", err
	}
	if to, err = beforeDir(dir, now); err != nil {
		return "", err
	}
	for _, name := range names {
		if err := move(filepath.Join(dir, name), filepath.Join(to, name)); err != nil {
			return to, err
		}
	}
	return to, nil
}

// move moves a file or folder and creates the folder that it moves to.
func move(from, to string) error {
	if err := file.MkdirAll(filepath.Dir(to)); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// beforeDir creates a directory with an unused name.
func beforeDir(dir string, now time.Time) (string, error) {
	if err := file.MkdirAll(filepath.Join(dir, result.BeforeName)); err != nil {
		return "", err
	}
	name := now.UTC().Format("20060102T150405Z")
	for i := 1; ; i++ {
		path := filepath.Join(dir, result.BeforeName, name)
		if i > 1 {
			path += "-" + strconv.Itoa(i)
		}
		err := os.Mkdir(path, file.FolderMode)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return path, err
		}
	}
}

// Path returns the path of a file in the directory.
func (a Artifacts) Path(name string) string { return filepath.Join(a.Dir, name) }

// Write writes a file of the directory completely or not at all: under a temporary name first.
func (a Artifacts) Write(name string, write func(*os.File) error) error {
	if err := file.ReplaceLink(a.Path(name), write); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
