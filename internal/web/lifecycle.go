package web

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"
)

// lifecycle is for POST and PUT, as Prometheus has it. A browser may send them from this server's own pages only: else
// any site that an operator visits could pause a daemon.
func (s *Server) lifecycle(mux *http.ServeMux) {
	sites := http.NewCrossOriginProtection()
	handle := func(path string, h http.HandlerFunc) {
		if !s.options.Lifecycle {
			h = func(w http.ResponseWriter, _ *http.Request) {
				say(w, http.StatusForbidden, "Lifecycle API is not enabled.")
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
}

func (s *Server) reload(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // reading a long trace may take longer than an answer
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
	err = s.options.Pause(r.Context(), name, paused)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		say(w, http.StatusServiceUnavailable, err.Error())
		return
	case err != nil:
		say(w, http.StatusNotFound, err.Error())
		return
	}
	subject := "All workloads are"
	if name != "" {
		subject = fmt.Sprintf("Workload %q is", name)
	}
	say(w, http.StatusOK, subject+map[bool]string{true: " paused.", false: " resumed."}[paused])
}

// workload is the name that a request gives in its query or in its form, "" for none. Whatever else it says is
// refused: a slip of the pen must not pause everything.
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
