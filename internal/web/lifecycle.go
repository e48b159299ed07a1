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

// lifecycle is for POST and PUT, as Prometheus has it. A browser may send them from this server's own pages only: else
// any site that an operator visits could pause a daemon. Nor from a page that it has come to by a name.
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
}

// atAddress refuses browsers that have come by a host's name. A stranger's page whose name is made to lead here (DNS rebinding)
// looks to its browser, and so to the check of origins, like one of ours; an address and localhost cannot be made to lead
// elsewhere. Programs give no origin, and may use any name.
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
