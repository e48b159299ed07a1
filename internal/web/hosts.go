package web

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
)

// A host of a request is foreign if another party could make its name lead here (DNS rebinding). Then a browser takes a page of that party
// for one of this server's, and the page could read and change everything here. An address and localhost cannot be made to lead here. The
// machine's own name and allowed_hosts are the operator's. Programs may use any name: only a browser runs pages of others.

// known answers 421 to a browser's request to a foreign host. The runbook and the probes are the same everywhere, and tell nothing.
func (s *Server) known(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		public := r.URL.Path == "/runbook" || r.URL.Path == "/-/healthy" || r.URL.Path == "/-/ready"
		if !public && isBrowser(r) && s.isForeign(r.Host) {
			host := (&url.URL{Host: r.Host}).Hostname()
			writeText(w, http.StatusMisdirectedRequest, fmt.Sprintf("A browser may open this at an address, at localhost, "+
				"or at a name in web.allowed_hosts. %.100q is not among them, and could be made to lead here by others.", host))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// isBrowser reports whether a request is from a browser, as far as a page's scripts cannot help it. No header does for all: Sec-Fetch-* are
// sent to addresses of this machine and over TLS only, Origin is not sent when a page reads its own origin, and scripts can set User-Agent in
// Firefox and Safari. But every browser adds Accept-Language, and a script can only change it.
func isBrowser(r *http.Request) bool {
	for name := range r.Header {
		if name == "Accept-Language" || name == "Origin" || strings.HasPrefix(name, "Sec-Fetch-") {
			return true
		}
	}
	return strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

func (s *Server) isForeign(hostport string) bool {
	host := strings.ToLower(strings.TrimSuffix((&url.URL{Host: hostport}).Hostname(), "."))
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return false
	}
	if own, err := os.Hostname(); err == nil && host == strings.ToLower(own) {
		return false
	}
	return !slices.ContainsFunc(s.options.AllowedHosts, func(one string) bool { return one == "*" || strings.ToLower(one) == host })
}
