package token

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"replayd/internal/file"
)

// maxFile bounds a tokenizer's file, in bytes. Gemma 3's is 33 MB. It bounds the memory too: see TestMemoryOfFiles.
const maxFile = 64 << 20

// maxRevision bounds the name of a revision, in bytes.
const maxRevision = 4 << 10

// ErrNotFound reports that this machine has no tokenizer of a name. Family may know a word list.
var ErrNotFound = errors.New("no tokenizer found")

// Open finds and reads a tokenizer. A name is
//   - a file: Hugging Face's tokenizer.json, or tiktoken's lines of a base64 token and its rank;
//   - a folder that holds a tokenizer.json or one .tiktoken file;
//   - a model, such as Qwen/Qwen3-0.6B, that Hugging Face's libraries have downloaded
//     to the folder named by HF_HUB_CACHE or HF_HOME.
//
// Open does not use the network. An error other than ErrNotFound says what is wrong with the file that was found.
func Open(name string) (*Tokenizer, error) {
	path, err := find(name)
	if err != nil {
		return nil, err
	}
	f, err := file.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data := bytes.NewBuffer(make([]byte, 0, min(info.Size(), maxFile)+bytes.MinRead)) // io.ReadAll would take twice the room
	if _, err := data.ReadFrom(io.LimitReader(f, maxFile+1)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if data.Len() > maxFile {
		return nil, fmt.Errorf("%s: want at most %d MiB, got more", path, maxFile>>20)
	}
	t, err := read(path, data.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// read builds a tokenizer from a file's content. The name of a tiktoken file may determine its pattern.
func read(path string, data []byte) (*Tokenizer, error) {
	t := &Tokenizer{path: path, growth: 1}
	parse := t.readRanks
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		parse = t.readJSON
	}
	if err := parse(data); err != nil {
		return nil, err
	}
	t.model.seal()
	return t, nil
}

func find(name string) (string, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return inFolder(name)
	case err == nil && !info.Mode().IsRegular():
		return "", fmt.Errorf("%s: want a file or a folder, got %s", name, info.Mode().Type())
	case err == nil:
		return name, nil
	case errors.Is(err, fs.ErrPermission):
		return "", err
	}
	hub, hubErr := hub()
	if hubErr != nil {
		return "", fmt.Errorf("tokenizer %q: %w: there is no such file, and no folder of Hugging Face's: %w", name, ErrNotFound, hubErr)
	}
	if folder, ok := snapshot(hub, name); ok {
		return inFolder(folder)
	}
	return "", fmt.Errorf("tokenizer %q: %w: there is no such file, and no such model in %s", name, ErrNotFound, hub)
}

func inFolder(folder string) (string, error) {
	if path := filepath.Join(folder, "tokenizer.json"); exists(path) {
		return path, nil
	}
	found, err := filepath.Glob(filepath.Join(escapeGlob.ReplaceAllString(folder, `\$0`), "*.tiktoken"))
	if err != nil || len(found) != 1 {
		return "", errors.Join(err, fmt.Errorf("%s: %w: want tokenizer.json or one .tiktoken file, got no tokenizer.json and %d of the other",
			folder, ErrNotFound, len(found)))
	}
	return found[0], nil
}

var escapeGlob = regexp.MustCompile(`[\\*?\[]`)

// hub returns the folder in which Hugging Face's libraries store downloaded models, according to their environment
// variables (huggingface_hub 1.0, "Environment variables").
func hub() (string, error) {
	if path := os.Getenv("HF_HUB_CACHE"); path != "" {
		return path, nil
	}
	if path := os.Getenv("HF_HOME"); path != "" {
		return filepath.Join(path, "hub"), nil
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "huggingface", "hub"), nil
}

// model matches a model's name on Hugging Face's hub. No other name is used as a path.
var model = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$`)

// snapshot returns the folder of a model's files: the revision of the branch main, else the newest revision.
func snapshot(hub, name string) (string, bool) {
	if !model.MatchString(name) {
		return "", false
	}
	folder := filepath.Join(hub, "models--"+strings.ReplaceAll(name, "/", "--"))
	if main, err := file.Read(filepath.Join(folder, "refs", "main"), maxRevision); err == nil {
		revision := strings.TrimSpace(string(main))
		if path := filepath.Join(folder, "snapshots", revision); revision == filepath.Base(revision) && exists(path) {
			return path, true
		}
	}
	entries, err := os.ReadDir(filepath.Join(folder, "snapshots"))
	if err != nil {
		return "", false
	}
	var newest fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.IsDir() && (newest == nil || info.ModTime().After(newest.ModTime())) {
			newest = info
		}
	}
	if newest == nil {
		return "", false
	}
	return filepath.Join(folder, "snapshots", newest.Name()), true
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
