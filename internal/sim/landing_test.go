package sim

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// Each link of the page at / leads to a page of the engine.
func TestLanding(t *testing.T) {
	o := Defaults()
	o.Model = "<b>m</b>"
	engine, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		engine.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	page := get("/").Body.String()
	links := regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(links) != 4 || !strings.Contains(page, "&lt;b&gt;m&lt;/b&gt;") || strings.Contains(page, "<b>m") {
		t.Errorf("want four links and the model's name escaped, got %s", page)
	}
	for _, link := range links {
		if code := get(link[1]).Code; code != 200 {
			t.Errorf("%s: want 200, got %d", link[1], code)
		}
	}
	if code := get("/nothing").Code; code != 404 {
		t.Errorf("want 404 of a page that there is none of, got %d", code)
	}
}
