package openai

import (
	"slices"

	"replayd/internal/secret"
)

// maxRequestSecrets bounds how many secrets of request headers are remembered: those of 16 workloads with all the
// headers that they may have.
const maxRequestSecrets = 256

// hidden has the secrets that no text may show. It never changes.
type hidden struct {
	own      []string // the credentials that were read last, and those in bodies
	requests []string // the newest of request headers, and credentials of before: answers to them may still come
	set      secret.Set
}

// with returns the secrets with other own ones and more of requests; h itself if these are no news. Own ones that are
// replaced become secrets of requests.
func (h *hidden) with(own, more []string) *hidden {
	same, requests := slices.Equal(own, h.own), h.requests
	if !same {
		more = slices.Concat(h.own, more)
	}
	for _, v := range more {
		if !slices.Contains(requests, v) {
			same, requests = false, append(slices.Clone(requests[max(0, len(requests)+1-maxRequestSecrets):]), v)
		}
	}
	if same {
		return h
	}
	return &hidden{own, requests, secret.NewSet(slices.Concat(own, requests))}
}

// hide remembers secrets of request headers.
func (c *Client) hide(values []string) {
	for {
		old := c.hidden.Load()
		if now := old.with(old.own, values); now == old || c.hidden.CompareAndSwap(old, now) {
			return
		}
	}
}

// Hidden returns the secrets that no text of the target may show: its credentials, and the secrets in request headers
// and bodies. Some servers repeat the key that they refuse.
func (c *Client) Hidden() secret.Set { return c.hidden.Load().set }

// front returns at most n bytes from the beginning of a server's text, with our credentials redacted, including one
// that byte n truncates.
func (c *Client) front(b []byte, n int) string {
	if len(b) < n {
		return c.Hidden().Hide(string(b))
	}
	return c.Hidden().HideCut(string(b[:n]), "")
}
