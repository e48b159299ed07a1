package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A release is the files of one commit.
type release struct {
	root     string // of the repository
	out      string // where the files go
	work     string // a folder for what is made on the way
	version  version
	revision string
	at       time.Time // the time of every file in every archive
	owner    owner
	log      io.Writer

	platforms []platform // of the archives
}

func newRelease(ctx context.Context, root, described, revision string) (*release, error) {
	r := &release{revision: revision, log: io.Discard, platforms: platforms}
	var err error
	if r.root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	if r.version, err = parseVersion(described); err != nil {
		return nil, err
	}
	if r.owner, err = readOwner(r.root); err != nil {
		return nil, err
	}
	if r.at, err = sourceDate(ctx, r.root); err != nil {
		return nil, err
	}
	r.work, err = os.MkdirTemp("", "replayd-release-")
	return r, err
}

func (r *release) close() { os.RemoveAll(r.work) }

// sourceDate is SOURCE_DATE_EPOCH (reproducible-builds.org/specs/source-date-epoch), or the time of the commit.
func sourceDate(ctx context.Context, root string) (time.Time, error) {
	text, from := os.Getenv("SOURCE_DATE_EPOCH"), "SOURCE_DATE_EPOCH"
	if text == "" {
		from = "git log -1 --format=%ct"
		c := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct")
		c.Dir = root
		said, err := c.Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("%s: %w; without git, set SOURCE_DATE_EPOCH", from, err)
		}
		text = strings.TrimSpace(string(said))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("%s: want seconds since 1970, got %q", from, text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// A product is a step that writes one or more files. The last two describe those that are there already, and so come last.
type product struct {
	name string
	make func(*release, context.Context) error
}

var products = []product{
	{"binaries", (*release).binaries},
	{"licenses", (*release).licenses},
	{"archives", (*release).archives},
	{"packages", (*release).packages},
	{"image", (*release).image},
	{"chart", (*release).chart},
	{"manifests", (*release).manifests},
	{"bills of materials", (*release).bills},
	{"notes", (*release).notes},
	{"statement", (*release).statement},
	{"checksums", (*release).checksums},
}

// make empties the folder and writes every file into it.
func (r *release) make(ctx context.Context) error {
	if err := r.empty(); err != nil {
		return err
	}
	if r.version.dirty {
		fmt.Fprintln(r.log, "the tree has changes that no commit has: nobody else can make these files again")
	}
	for _, p := range products {
		begin := time.Now()
		if err := p.make(r, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprintf(r.log, "%6.1f s  %s\n", time.Since(begin).Seconds(), p.name)
	}
	return nil
}

// empty removes the files of an earlier release. A folder with anything else in it is left alone.
func (r *release) empty() error {
	old, err := os.ReadDir(r.out)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range old {
		if !e.Type().IsRegular() {
			return fmt.Errorf("-out: %s: want a folder of files only, got %s in it", r.out, e.Name())
		}
		if n := e.Name(); !strings.HasPrefix(n, "replayd") && n != notesFile && n != checksumFile {
			return fmt.Errorf("-out: %s: want the files of an earlier release, or none, got %s", r.out, n)
		}
	}
	for _, e := range old {
		if err := os.Remove(filepath.Join(r.out, e.Name())); err != nil {
			return err
		}
	}
	return os.MkdirAll(r.out, 0o755)
}

// file is the path of a file of the release: replayd, the version and an end.
func (r *release) file(end string) string {
	return filepath.Join(r.out, "replayd-"+r.version.String()+end)
}
