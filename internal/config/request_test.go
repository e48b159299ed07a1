package config

import (
	"testing"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/fault"
	"replayd/internal/openai"
	"replayd/internal/replay"
)

// A header that is sent back cannot be one of the target's own too.
func TestEchoAgainstTheTarget(t *testing.T) {
	for echo, want := range map[string]string{
		"": "", "X-Other": "", "X-A": `echo: contradicts http.http_headers.x-a of target "t": want one of them`,
		"Set-Cookie": `echo: contradicts http.http_headers.Cookie of target "t": want one of them`,
	} {
		target := Target{Name: "t"}
		target.HTTP.HTTPHeaders = &commoncfg.Headers{Headers: map[string]commoncfg.Header{"x-a": {}, "Cookie": {}}}
		var faults fault.List
		w := Workload{Request: replay.RequestFields{EchoHeader: echo}}
		w.checkEcho("echo", &target, &faults)
		got := ""
		for _, f := range faults {
			got += f.Key + ": " + f.Want
		}
		if got != want {
			t.Errorf("%q: want %q, got %q", echo, want, got)
		}
	}
}

// Without a given api it is the one that the address names, so that an address of completions is not measured as chat.
func TestAPIFollowsTheAddress(t *testing.T) {
	for keys, want := range map[string]openai.API{
		"url: http://h":                                  openai.Chat,
		"url: http://h/v1/chat/completions":              openai.Chat,
		"url: http://h/v1/completions":                   openai.Completions,
		"url: http://h, endpoint_path: /a/completions":   openai.Completions,
		"url: http://h/v1, api: completions":             openai.Completions,
		"url: http://h/v1/completions, api: completions": openai.Completions,
		"url: http://h/v1/completions, api: ":            openai.Completions,
	} {
		c := readBack(t, "targets: [{name: t, "+keys+"}]")
		if got := c.Targets[0].API; got != want || len(c.Targets[0].CheckAddress()) > 0 {
			t.Errorf("%s: want %s, got %s, %v", keys, want, got, c.Targets[0].CheckAddress())
		}
	}
}
