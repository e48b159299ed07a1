package config

import (
	"net/url"
	"strings"

	"replayd/internal/fault"
)

// maxLink bounds an address that links in alerts begin with, in bytes.
const maxLink = 1 << 10

// checkLinks checks the addresses that links in alerts begin with. They are labels of a series, so they hold no secrets.
func (w *Web) checkLinks(f *fault.List) {
	for _, link := range []struct{ key, text string }{
		{"external_url", w.ExternalURL}, {"runbook_url", w.RunbookURL}, {"dashboards_url", w.DashboardsURL},
	} {
		if link.text == "" {
			continue
		}
		const want = "want http(s)://HOST/PATH without a user, a query, a # or a quote, got another address"
		u, err := url.Parse(link.text)
		f.If(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || len(link.text) > maxLink ||
			strings.ContainsAny(link.text, "?#'\"`\\ ") || strings.ContainsFunc(link.text, func(r rune) bool { return r <= ' ' || r > '~' }),
			"web."+link.key, want)
	}
}

// Links are addresses that links in alerts begin with; "": not known.
type Links struct{ External, Runbook, Dashboards string }

// Links returns the addresses without a slash at the end. The runbook is the page of this process, unless another is named.
func (w *Web) Links() Links {
	l := Links{External: strings.TrimRight(w.ExternalURL, "/"), Runbook: w.RunbookURL, Dashboards: strings.TrimRight(w.DashboardsURL, "/")}
	if l.Runbook == "" && l.External != "" {
		l.Runbook = l.External + "/runbook"
	}
	return l
}

// Hosts are the names at which a browser may use the process.
func (w *Web) Hosts() []string {
	u, err := url.Parse(w.ExternalURL)
	if err != nil || u.Hostname() == "" {
		return w.AllowedHosts
	}
	return append([]string{u.Hostname()}, w.AllowedHosts...)
}
