package live

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"path"
	"time"

	"github.com/klauspost/compress/gzhttp"
)

// pageFile is the template of the page among its files.
const pageFile = "page.html"

// policy lets the page load only its own files: no inline script or style, no other host, no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page renders html/template, which escapes texts of the configuration and of servers.
var page = template.Must(template.New(pageFile).Funcs(template.FuncMap{
	"short":  short,
	"clock":  func(t instant) string { return time.Time(t).UTC().Format(time.DateTime) + " UTC" },
	"length": func(s span) string { return time.Duration(s).Round(time.Second).String() },
}).ParseFS(assets, "assets/"+pageFile))

// Handler serves the page at /live, its files below /live/, the event stream at /live/events, and the same data once at
// /live/snapshot.json.
func (b *Board) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /live", b.servePage)
	mux.Handle("GET /live/{$}", http.RedirectHandler("../live", http.StatusFound))
	mux.HandleFunc("GET /live/events", b.serveEvents)
	mux.HandleFunc("GET /live/snapshot.json", b.serveSnapshot)
	mux.Handle("GET /live/{file}", gzhttp.GzipHandler(http.HandlerFunc(b.serveFile)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		mux.ServeHTTP(w, r)
	})
}

// servePage renders the current figures, for readers without JavaScript and for the time before the first event.
func (b *Board) servePage(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	s := b.snapshot()
	b.mu.Unlock()
	var text bytes.Buffer
	if err := page.Execute(&text, s); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text.Bytes())
}

func (b *Board) serveSnapshot(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	text := b.all()
	b.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text)
}

// The files of the page. The page loads nothing from elsewhere, and nothing is built.
//
//go:embed assets
var assets embed.FS

// digestOfFiles identifies the page's files, the template included.
func digestOfFiles() string {
	all := sha256.New()
	entries, _ := assets.ReadDir("assets") // the folder is embedded
	for _, entry := range entries {
		text, _ := assets.ReadFile("assets/" + entry.Name())
		sum := sha256.Sum256(text)
		all.Write(sum[:])
	}
	return hex.EncodeToString(all.Sum(nil)[:8])
}

// mediaTypes are those of the page's files. The system's table is not used: it differs between machines.
var mediaTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// serveFile serves one of the page's files. Browsers revalidate a file each time, so that no old script meets new data
// after an upgrade. The tag is a weak one, because it is that of the compressed file too.
func (b *Board) serveFile(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	text, err := assets.ReadFile("assets/" + name)
	if err != nil || name == pageFile {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Type", mediaTypes[path.Ext(name)])
	h.Set("ETag", `W/"`+b.build+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
}
