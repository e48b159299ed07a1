package sim

import (
	"html"
	"io"
	"net/http"

	"github.com/prometheus/exporter-toolkit/web"
)

// landing is the page at /: what the engine is, and its addresses.
func (e *Engine) landing() http.Handler {
	page, err := web.NewLandingPage(web.LandingConfig{
		Name:        "replayd sim",
		Description: "A simulated inference engine with a GPU. POST /v1/chat/completions and /v1/completions answer as vLLM does; model: " + html.EscapeString(e.options.Model) + ".",
		Profiling:   "false",
		Links: []web.LandingLinks{
			{Address: "v1/models", Text: "Models", Description: "the model and its adapters"},
			{Address: "metrics", Text: "Metrics", Description: "vLLM's series"},
			{Address: "dcgm/metrics", Text: "GPU metrics", Description: "dcgm-exporter's series"},
			{Address: "health", Text: "Health", Description: "200 while the engine answers"},
		},
		ExtraCSS: ":root { color-scheme: light dark; }\nli { margin: .75rem 0; }\n", // the toolkit's page is light only
	})
	if err != nil {
		panic(err) // the template is the toolkit's and its values are constants
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!DOCTYPE html>\n") // the toolkit's page has none
		page.ServeHTTP(w, r)
	})
}
