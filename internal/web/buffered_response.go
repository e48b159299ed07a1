package web

import (
	"bytes"
	"net/http"

	"golang.org/x/sync/singleflight"
)

const maxRendered = 2 // concurrent renderings: rendering uses CPU that the replay needs

// A bufferedResponse holds a response that is rendered completely before it is written. It implements
// http.ResponseWriter for the rendering. After that it does not change, and several requests can share it.
type bufferedResponse struct {
	header http.Header
	head   http.Header // the header at the time of WriteHeader
	status int
	body   bytes.Buffer
}

func (s *bufferedResponse) Header() http.Header { return s.header }

func (s *bufferedResponse) WriteHeader(status int) {
	if s.status == 0 {
		s.status, s.head = status, s.header.Clone()
	}
}

func (s *bufferedResponse) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	return s.body.Write(p)
}

// A press renders buffered responses, at most maxRendered at a time. Equal requests that arrive before their rendering
// begins share one response. Many concurrent clients therefore cost as much as one, and each gets a page rendered after
// its request arrived.
type press struct {
	slots chan struct{}
	next  singleflight.Group // responses whose rendering has not begun, by request
}

func newPress() *press { return &press{slots: make(chan struct{}, maxRendered)} }

// render renders the handler's response to a request, or waits for an equal request's rendering that has not begun yet.
// If the handler panics, so do all that wait for it.
func (p *press) render(h http.Handler, r *http.Request) *bufferedResponse {
	asked := r.URL.Path + "?" + r.URL.RawQuery + "\n" + r.Header.Get("Accept") + "\n" + r.Header.Get("Accept-Encoding")
	s, _, _ := p.next.Do(asked, func() (any, error) {
		p.slots <- struct{}{}
		defer func() { <-p.slots }()
		p.next.Forget(asked)
		s := &bufferedResponse{header: http.Header{}}
		h.ServeHTTP(s, r)
		s.WriteHeader(http.StatusOK)
		return s, nil
	})
	return s.(*bufferedResponse)
}
