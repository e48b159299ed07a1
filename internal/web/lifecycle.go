package web

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// lifecycle registers the handlers for POST and PUT, as in Prometheus. Requests from browsers must come from this
// server's own pages; otherwise any site that an operator visits could pause replayd. The page's host must also be an
// address or localhost, see atAddress.
func (s *Server) lifecycle(mux *http.ServeMux) {
	sites := http.NewCrossOriginProtection()
	handle := func(path string, h http.HandlerFunc) {
		if !s.options.Lifecycle {
			h = func(w http.ResponseWriter, _ *http.Request) {
				say(w, http.StatusForbidden, "Lifecycle API is not enabled.")
			}
		}
		for _, method := range []string{http.MethodPost, http.MethodPut} {
			mux.Handle(method+" "+path, sites.Handler(atAddress(h)))
		}
	}
	if s.options.Reload != nil {
		handle("/-/reload", s.reload)
	}
	if s.options.Pause != nil {
		handle("/-/pause", func(w http.ResponseWriter, r *http.Request) { s.pause(w, r, true) })
		handle("/-/resume", func(w http.ResponseWriter, r *http.Request) { s.pause(w, r, false) })
	}
	if s.options.RestartComparison != nil {
		handle("/-/comparisons/{name}/restart", s.restartComparison)
	}
}

// atAddress rejects requests of browsers that use a host name. With DNS rebinding, a foreign name resolves to this
// server, so the browser and the check of origins treat a foreign page as one of this server's. An address or localhost
// cannot be rebound. Programs send no origin and may use any name.
func atAddress(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		_, err := netip.ParseAddr(host)
		if browser := r.Header.Get("Origin") + r.Header.Get("Sec-Fetch-Site"); browser != "" && err != nil && !strings.EqualFold(host, "localhost") {
			say(w, http.StatusForbidden, "A browser may use this at an address or at localhost only, not at a name that could be made to lead here.")
			return
		}
		h(w, r)
	}
}

func (s *Server) reload(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // reading a long trace may exceed the write timeout
	err := s.options.Reload(r.Context())
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err != nil {
		say(w, http.StatusInternalServerError, "The configuration is not reloaded:\n"+err.Error())
		return
	}
	say(w, http.StatusOK, "The configuration is reloaded.")
}

func (s *Server) pause(w http.ResponseWriter, r *http.Request, paused bool) {
	name, err := workload(w, r)
	if err != nil {
		say(w, http.StatusBadRequest, err.Error())
		return
	}
	if err := s.options.Pause(r.Context(), name, paused); err != nil {
		sayUnchanged(w, err)
		return
	}
	subject := "All workloads are"
	if name != "" {
		subject = fmt.Sprintf("Workload %q is", name)
	}
	say(w, http.StatusOK, subject+map[bool]string{true: " paused.", false: " resumed."}[paused])
}

// restartComparison begins a new epoch of a comparison.
func (s *Server) restartComparison(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if err := s.options.RestartComparison(r.Context(), name); err != nil {
		sayUnchanged(w, err)
		return
	}
	say(w, http.StatusOK, fmt.Sprintf("Comparison %q begins anew.", name))
}

// sayUnchanged answers that a change was not made: in time, or because the name is unknown.
func sayUnchanged(w http.ResponseWriter, err error) {
	status := http.StatusNotFound
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		status = http.StatusServiceUnavailable
	}
	say(w, status, err.Error())
}

// workload returns the workload that a request names in its query or form, "" for none. Any other parameter is
// rejected, so that a typo does not pause all workloads.
func workload(w http.ResponseWriter, r *http.Request) (string, error) {
	const form = "application/x-www-form-urlencoded"
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.ContentLength != 0 && kind != form {
		return "", fmt.Errorf("want a form as %s, got %q", form, kind)
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return "", err
	}
	name := r.Form.Get("workload")
	if len(r.Form) > 0 && (len(r.Form) > 1 || len(r.Form["workload"]) != 1 || name == "") {
		return "", fmt.Errorf("want workload=NAME once, or nothing for all, got %q", r.Form.Encode())
	}
	return name, nil
}
