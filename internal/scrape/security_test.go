package scrape

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	commoncfg "github.com/prometheus/common/config"
)

const canary = `kanarie/+"<&>kanarie`

// No error contains credentials that an engine, a proxy or a token server repeats, even truncated ones.
func TestErrorsHaveNoCredentials(t *testing.T) {
	var say func(w http.ResponseWriter, told string)
	s := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, r.FormValue("client_secret"))
			return
		}
		user, password, _ := r.BasicAuth()
		say(w, r.Header.Get("X-Key")+user+password+r.Header.Get("Authorization"))
	})
	withKey := func(o *FetchOptions) {
		o.HTTP.HTTPHeaders = &commoncfg.Headers{Headers: map[string]commoncfg.Header{"X-Key": {Values: []string{canary}}}}
	}
	for name, c := range map[string]struct {
		say func(w http.ResponseWriter, told string)
		set func(o *FetchOptions)
	}{
		"a key": {func(w http.ResponseWriter, told string) { http.Error(w, told, http.StatusUnauthorized) }, withKey},
		"a user": {func(w http.ResponseWriter, told string) { http.Error(w, told, http.StatusUnauthorized) }, func(o *FetchOptions) {
			o.HTTP.BasicAuth = &commoncfg.BasicAuth{Username: "kanarie-user", Password: canary}
		}},
		"a redirect": {func(w http.ResponseWriter, told string) {
			w.Header().Set("Location", "http://127.0.0.1:1/"+url.PathEscape(told)+"?key="+url.QueryEscape(told))
			w.WriteHeader(http.StatusFound)
		}, withKey},
		"an odd redirect": {func(w http.ResponseWriter, told string) {
			w.Header().Set("Location", strings.Repeat("x", 110)+told)
			w.WriteHeader(http.StatusMultipleChoices)
		}, withKey},
		"a kind":     {func(w http.ResponseWriter, told string) { w.Header().Set("Content-Type", told+"/json") }, withKey},
		"a coding":   {func(w http.ResponseWriter, told string) { w.Header().Set("Content-Encoding", told) }, withKey},
		"a bad line": {func(w http.ResponseWriter, told string) { fmt.Fprintf(w, "a{b=%q} x\n", told) }, withKey},
		"a cut line": {func(w http.ResponseWriter, told string) { fmt.Fprint(w, strings.Repeat("x", 75)+told+"\n") }, withKey},
		"a page":     {func(w http.ResponseWriter, told string) { fmt.Fprint(w, "<p>"+told) }, withKey},
		"a server of tokens": {nil, func(o *FetchOptions) {
			o.HTTP.OAuth2 = &commoncfg.OAuth2{ClientID: "me", ClientSecret: canary, TokenURL: s.URL + "/token"}
		}},
	} {
		say = c.say
		_, err := fetcher(t, c.set).Get(t.Context(), s.URL+"/m?api_key="+url.QueryEscape(canary), anyName)
		if err == nil || strings.Contains(err.Error(), "kana") || !strings.Contains(err.Error(), "<secret>") {
			t.Errorf("%s: want an error with <secret>, got %v", name, err)
		}
	}
}

// An untrusted certificate is rejected unless the configuration allows it, and no request is sent.
func TestTLSIsVerified(t *testing.T) {
	heard := make(chan struct{}, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { heard <- struct{}{} }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // the test causes failed handshakes
	s.StartTLS()
	defer s.Close()
	if _, err := fetcher(t, nil).Get(t.Context(), s.URL, anyName); reasonOf(t, err) != ReasonConnect || !strings.Contains(err.Error(), "certificate") || len(heard) > 0 {
		t.Errorf("want connect and nothing sent, got %v, %d requests", err, len(heard))
	}
}

// HTTP/2 names the headers differently: keys stay masked and other text stays readable.
func TestErrorsOverHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		_, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		http.Error(w, fmt.Sprint(r.Proto, " gzip ", user, password, " and ", key, r.Header.Get("X-Key")), http.StatusUnauthorized)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	for name, set := range map[string]func(o *FetchOptions){
		"a bearer": func(o *FetchOptions) {
			o.HTTP.Authorization = &commoncfg.Authorization{Type: "Bearer", Credentials: canary}
		},
		"a password": func(o *FetchOptions) {
			o.HTTP.BasicAuth = &commoncfg.BasicAuth{Username: "kanarie-user", Password: canary}
		},
		"a key": func(o *FetchOptions) {
			o.HTTP.HTTPHeaders = &commoncfg.Headers{Headers: map[string]commoncfg.Header{"X-Key": {Values: []string{canary}}}}
		},
	} {
		_, err := fetcher(t, func(o *FetchOptions) {
			o.HTTP.TLSConfig.InsecureSkipVerify = true
			set(o)
		}).Get(t.Context(), s.URL+"/metrics", anyName)
		if err == nil || strings.Contains(err.Error(), "kana") || !strings.Contains(err.Error(), "HTTP/2.0 gzip") || !strings.Contains(err.Error(), "<secret>") || !strings.Contains(err.Error(), s.URL+"/metrics") {
			t.Errorf("%s: want an error of %s/metrics, with HTTP/2.0 and <secret>, got %v", name, s.URL, err)
		}
	}
}
