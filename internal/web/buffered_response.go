package web

import (
	"net/http"
	"sync"
)

const (
	maxRendered = 2        // concurrent renderings: rendering uses CPU that the replay needs
	partBytes   = 64 << 10 // chunk size of a buffered response
)

// A bufferedResponse holds a response that is rendered completely before it is written. It implements
// http.ResponseWriter for the rendering. After that it does not change, and several requests can share it.
type bufferedResponse struct {
	rendered chan struct{} // closed when the rendering is complete
	header   http.Header
	head     http.Header // the header at the time of WriteHeader
	status   int
	parts    [][]byte
	bytes    int
}

// Header implements http.ResponseWriter.
func (s *bufferedResponse) Header() http.Header { return s.header }

// WriteHeader implements http.ResponseWriter.
func (s *bufferedResponse) WriteHeader(status int) {
	if s.status == 0 {
		s.status, s.head = status, s.header.Clone()
	}
}

// Write implements http.ResponseWriter.
func (s *bufferedResponse) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	s.bytes += len(p)
	for left := p; len(left) > 0; {
		last := len(s.parts) - 1
		if last < 0 || len(s.parts[last]) == partBytes {
			s.parts = append(s.parts, make([]byte, 0, partBytes))
			last++
		}
		n := min(len(left), partBytes-len(s.parts[last]))
		s.parts[last] = append(s.parts[last], left[:n]...)
		left = left[n:]
	}
	return len(p), nil
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
