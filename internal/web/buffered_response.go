package web

import (
	"bytes"
	"net/http"
	"sync"
)

const maxRendered = 2 // concurrent renderings: rendering uses CPU that the replay needs

// A bufferedResponse holds a response that is rendered completely before it is written. It implements
// http.ResponseWriter for the rendering. After that it does not change, and several requests can share it.
type bufferedResponse struct {
	rendered chan struct{} // closed when the rendering is complete
	header   http.Header
	head     http.Header // the header at the time of WriteHeader
	status   int
	body     bytes.Buffer
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
	mu    sync.Mutex
	next  map[string]*bufferedResponse // responses whose rendering has not begun, by request
}

func newPress() *press {
	return &press{slots: make(chan struct{}, maxRendered), next: map[string]*bufferedResponse{}}
}

// render renders the handler's response to a request, or waits for an equal request's rendering that has not begun yet.
func (p *press) render(h http.Handler, r *http.Request) *bufferedResponse {
	asked := r.URL.Path + "?" + r.URL.RawQuery + "\n" + r.Header.Get("Accept") + "\n" + r.Header.Get("Accept-Encoding")
	p.mu.Lock()
	s, shared := p.next[asked]
	if !shared {
		s = &bufferedResponse{rendered: make(chan struct{}), header: http.Header{}}
		p.next[asked] = s
	}
	p.mu.Unlock()
	if shared {
		<-s.rendered
		return s
	}
	p.slots <- struct{}{}
	p.mu.Lock()
	delete(p.next, asked)
	p.mu.Unlock()
	defer func() {
		s.WriteHeader(http.StatusInternalServerError) // if the handler panicked
		close(s.rendered)
		<-p.slots
	}()
	h.ServeHTTP(s, r)
	s.WriteHeader(http.StatusOK)
	return s
}
