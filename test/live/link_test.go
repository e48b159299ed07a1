//go:build live

package live

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// TestLostConnection: the page clearly shows that replayd is gone, and reconnects by itself.
func TestLostConnection(t *testing.T) {
	b := startChromium(t)
	s, at := serve(t, "", "chat")
	p := b.open(t, "http://"+at+"/live", 1440, "light")
	p.until(t, ready)
	p.until(t, `document.getElementById('lost').hidden && document.getElementById('pulse').innerText === 'live'`)
	s.stop()
	p.until(t, `document.getElementById('lost').checkVisibility() && document.getElementById('lost').innerText.includes('lost') && document.title.includes('lost')`)
	p.until(t, `/^\d+ s old$/.test(document.getElementById('pulse').innerText)`)
	serve(t, at, "chat", "another")
	p.until(t, `document.getElementById('lost').hidden && document.querySelectorAll('.card').length === 2`)
	p.until(t, `document.getElementById('pulse').innerText === 'live' && !document.title.includes('lost')`)
}

// TestSlowLink: the page waits for a first event that takes 12 s.
func TestSlowLink(t *testing.T) {
	b := startChromium(t)
	_, at := serve(t, "", "chat")
	var streams atomic.Int32
	through := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: at})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/live/events" {
			streams.Add(1)
			select {
			case <-time.After(12 * time.Second):
			case <-r.Context().Done():
				return
			}
		}
		through.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(slow.CloseClientConnections) // the stream would not end by itself
	p := b.open(t, slow.URL+"/live", 1440, "light")
	p.until(t, ready)
	if n := streams.Load(); n != 1 {
		t.Errorf("the stream was opened %d times, want once", n)
	}
}
