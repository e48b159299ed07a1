package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"replayd/internal/config"
)

// A guard limit on a figure that a running engine does not show is refused, with its line in the file.
func TestProbe(t *testing.T) {
	pages := http.NewServeMux()
	say := func(path, text string) {
		pages.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	}
	say("/llama/metrics", "llamacpp:requests_processing 1\nllamacpp:requests_deferred 0\n")
	say("/engine/stats", "my_queue 3\n")
	say("/other/stats", "vllm:num_requests_waiting 0\n")
	say("/vllm/metrics", "vllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0.25\n")
	say("/smg/metrics", "smg_worker_health{worker=\"a\"} 1\n")
	s := httptest.NewServer(pages)
	defer s.Close()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(`targets:
- {name: a, url: "http://127.0.0.1:1"}
- {name: b, url: "http://127.0.0.1:1"}
- name: m
  url: "http://127.0.0.1:1"
  metrics: {url: "http://127.0.0.1:1/engine/stats", map: [{family: my_queue, as: requests_waiting}]}
- {name: o, url: "http://127.0.0.1:1"}
workloads:
- name: both
  target: a
  trace: {path: t.jsonl}
  guard:
    waiting: 4
    kv_cache_usage: 0.9
- {name: mapped, target: m, trace: {path: t.jsonl}, guard: {waiting: 4}}
- {name: other, target: o, trace: {path: t.jsonl}, guard: {waiting: 4}}
- {name: errors, target: b, trace: {path: t.jsonl}, guard: {error_ratio: 0.2}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file, nil, nil, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		engines map[string]string
		want    string
	}{
		{map[string]string{"": s.URL + "/vllm/v1"}, ""},
		{map[string]string{"a": s.URL + "/vllm/metrics"}, ""},
		{map[string]string{"m": s.URL}, ""}, // the page is metrics.url, at this engine
		{map[string]string{"o": s.URL + "/other/stats"}, ""},
		{map[string]string{"b": s.URL + "/nothing"}, ""}, // no guard of this target needs a figure
		{map[string]string{}, ""},
		{
			map[string]string{"b": s.URL, "m": s.URL, "": s.URL + "/llama"},
			file + `:14: workloads[0] "both": guard.kv_cache_usage: want a limit on a figure that the engine shows, got one that the page of ` +
				`llamacpp at ` + s.URL + `/llama lacks: it shows waiting only`,
		},
		{map[string]string{"a": s.URL + "/nothing/metrics"}, `probe of target a at ` + s.URL + `/nothing/metrics: `},
		{map[string]string{"a": "127.0.0.1"}, `probe of target a at 127.0.0.1: want an address such as http://127.0.0.1:8000, got "127.0.0.1"`},
		{map[string]string{"b": s.URL, "router": s.URL + "/smg/metrics"}, ""},
		{
			map[string]string{"b": s.URL, "router": s.URL + "/vllm/metrics"}, `probe of the router of target b at ` + s.URL + `/vllm/metrics: router ` +
				strings.TrimPrefix(s.URL, "http://") + `: this is the page of an engine, vllm: name it under metrics`,
		},
		{map[string]string{"router": s.URL + "/vllm/metrics"}, ""}, // nothing is probed without an address
		{
			map[string]string{"a": s.URL + "/smg/metrics"}, `probe of target a at ` + s.URL + `/smg/metrics: engine ` +
				strings.TrimPrefix(s.URL, "http://") + `: this is the page of a router, smg: name it under router.url`,
		},
	} {
		c.Targets[1].Router.URL = f.engines["router"]
		delete(f.engines, "router")
		text := ""
		if err := Probe(t.Context(), c, f.engines, "replayd/test"); err != nil {
			text = err.Error()
		}
		if f.want == "" && text != "" || !strings.HasPrefix(text, f.want) {
			t.Errorf("%v: want %q, got %q", f.engines, f.want, text)
		}
	}
}
