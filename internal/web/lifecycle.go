package web

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"
)

// lifecycle registers the handlers for POST and PUT, as in Prometheus. Requests from browsers must come from this
// server's own pages; otherwise any site that an operator visits could pause replayd. Their host must not be foreign either, see
// Server.known.
func (s *Server) lifecycle(mux *http.ServeMux) {
	sites := http.NewCrossOriginProtection()
	handle := func(path string, h http.HandlerFunc) {
		if !s.options.Lifecycle {
			h = func(w http.ResponseWriter, _ *http.Request) {
				writeText(w, http.StatusForbidden, "Lifecycle API is not enabled.")
			}
		}
		for _, method := range []string{http.MethodPost, http.MethodPut} {
			mux.Handle(method+" "+path, sites.Handler(h))
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

func (s *Server) reload(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // reading a long trace may exceed the write timeout
	err := s.options.Reload(r.Context())
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err != nil {
		status := http.StatusInternalServerError
		if errors.Is(err, context.DeadlineExceeded) { // a workload is stuck
			status = http.StatusServiceUnavailable
		}
		writeText(w, status, "The configuration is not reloaded:\n"+err.Error())
		return
	}
	writeText(w, http.StatusOK, "The configuration is reloaded.")
}

func (s *Server) pause(w http.ResponseWriter, r *http.Request, paused bool) {
	name, err := workload(w, r)
	if err != nil {
		writeText(w, http.StatusBadRequest, err.Error())
		return
	}
	if err := s.options.Pause(r.Context(), name, paused); err != nil {
		writeUnchanged(w, err)
		return
	}
	subject := "All workloads are"
	if name != "" {
		subject = fmt.Sprintf("Workload %q is", name)
	}
	writeText(w, http.StatusOK, subject+map[bool]string{true: " paused.", false: " resumed."}[paused])
}

// restartComparison begins a new epoch of a comparison. Tools ask again and again: for the version that is being judged
// already nothing happens.
func (s *Server) restartComparison(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	version, err := candidateVersion(w, r)
	if err != nil {
		writeText(w, http.StatusBadRequest, err.Error())
		return
	}
	anew, err := s.options.RestartComparison(r.Context(), name, version)
	switch {
	case err != nil:
		writeUnchanged(w, err)
	case !anew:
		writeText(w, http.StatusOK,
			fmt.Sprintf("Comparison %q: version %s is being judged already: evidence continues.", name, version))
	case version != "":
		writeText(w, http.StatusOK, fmt.Sprintf("Comparison %q begins anew, with version %s.", name, version))
	default:
		writeText(w, http.StatusOK, fmt.Sprintf("Comparison %q begins anew.", name))
	}
}

// writeUnchanged answers that a change was not made: in time, or because the name is unknown.
func writeUnchanged(w http.ResponseWriter, err error) {
	status := http.StatusNotFound
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		status = http.StatusServiceUnavailable
	}
	writeText(w, status, err.Error())
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
