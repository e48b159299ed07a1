package web

import (
	"net/http"
	"sync"
)

const (
	mostRendered = 2        // answers at once: rendering is the processor's work, and the replay has the cores first
	partBytes    = 64 << 10 // of an answer, kept and written as one
)

// A bufferedResponse is an answer that is rendered whole before any of it is written. It implements http.ResponseWriter for that; afterwards it
// does not change, and several requests can be answered with it.
type bufferedResponse struct {
	rendered chan struct{} // closed when it is
	header   http.Header
	head     http.Header // what the header was when the answer began
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

// A press renders sheets, a few at a time. Requests for the same that come before its rendering begins share one, so that many
// visitors at once cost as much as one, and each sees a page that is younger than its request.
type press struct {
	slots chan struct{}
	mu    sync.Mutex
	next  map[string]*bufferedResponse // whose rendering has not begun, by what was asked
}

func newPress() *press {
	return &press{slots: make(chan struct{}, mostRendered), next: map[string]*bufferedResponse{}}
}

// render renders a handler's answer to a request, or waits for the one that is being rendered.
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
		s.WriteHeader(http.StatusInternalServerError) // where the handler panicked
		close(s.rendered)
		<-p.slots
	}()
	h.ServeHTTP(s, r)
	s.WriteHeader(http.StatusOK)
	return s
}
