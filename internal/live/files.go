package live

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

// The files of the page. The page loads nothing from elsewhere, and nothing is built.
//
//go:embed assets
var assets embed.FS

// A file is one of the page's files, ready to be sent.
type file struct {
	kind   string // its media type
	plain  []byte
	zipped []byte
	digest string // of plain
}

// loadFiles returns the page's files by name, and a digest of all files.
func loadFiles() (files map[string]file, build string) {
	files = map[string]file{}
	all := sha256.New()
	entries, _ := assets.ReadDir("assets") // the folder is embedded
	for _, entry := range entries {
		text, _ := assets.ReadFile("assets/" + entry.Name())
		sum := sha256.Sum256(text)
		all.Write(sum[:])
		if entry.Name() == pageFile {
			continue
		}
		var zipped bytes.Buffer
		z, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // a buffer accepts all writes
		_, _ = z.Write(text)
		_ = z.Close()
		files[entry.Name()] = file{
			kind: kindOf(entry.Name()), plain: text, zipped: zipped.Bytes(), digest: hex.EncodeToString(sum[:8]),
		}
	}
	return files, hex.EncodeToString(all.Sum(nil)[:8])
}

// kindOf returns the media type of a file. The system's table is not used: it differs between machines.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "application/octet-stream"
}

// serveFile serves one of the page's files. Browsers revalidate a file each time, so that no old script meets new data
// after an upgrade.
func (b *Board) serveFile(w http.ResponseWriter, r *http.Request) {
	f, found := b.files[r.PathValue("file")]
	if !found {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Type", f.kind)
	body, tag := f.plain, f.digest
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		body, tag = f.zipped, f.digest+"-gz" // another body has another ETag, because a range of it can be requested
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip parses Accept-Encoding. It returns true if gzip is listed with a weight other than 0.
func acceptsGzip(accept string) bool {
	for each := range strings.SplitSeq(accept, ",") {
		coding, parameters, _ := mime.ParseMediaType("x/" + strings.TrimSpace(each))
		if coding == "x/gzip" {
			return strings.Trim(parameters["q"], "0.") != "" || parameters["q"] == ""
		}
	}
	return false
}
