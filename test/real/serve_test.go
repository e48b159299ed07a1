//go:build real

package real

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"replayd/test/outside"
)

// TestTokensAgree runs the daemon for REAL_SERVE (20s) with a llama-server that has no other clients. At the end the
// engine's own counters, replayd's metrics of the engine and replayd's client counters must agree.
func TestTokensAgree(t *testing.T) {
	length := outside.Knob(t, "REAL_SERVE", 10*time.Second, time.ParseDuration)
	llama := startLlama(t)
	dir := t.TempDir()
	replayd := filepath.Join(dir, "replayd")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", replayd, "./cmd/replayd")
	build.Dir = repository
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, said)
	}
	trace, _ := cutTrace(t)
	listen, config := outside.Address(t), filepath.Join(dir, "replayd.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `
web: {enable_lifecycle: true}
targets: [{name: llama, url: "%s", metrics: {interval: 1s}}]
workloads: [{name: w, trace: {path: %s}, speed: 4, lanes: 8, repeat: {align: start, every: 1m}}]
`, llama.url, trace), 0o600); err != nil {
		t.Fatal(err)
	}
	p := outside.Start(t, filepath.Join(dir, "serve.out"), replayd, "serve", "--config", config, "--web.listen-address", listen)
	url := "http://" + listen
	p.Ready(t, http.DefaultClient, url+"/-/ready")
	<-time.After(length)
	if status, body, err := outside.Call(t.Context(), http.DefaultClient, http.MethodPost, url+"/-/pause"); err != nil || status != http.StatusOK {
		t.Fatalf("pause: %d %s %v", status, body, err)
	}
	var page outside.Page
	var own tokens
	outside.Until(t, func() (err error) { // until nothing is in flight, and the engine was scraped after that
		if page, err = outside.Scrape(t.Context(), url); err != nil {
			return err
		}
		if n := page.Sum("replayd_requests_in_flight"); n > 0 {
			return fmt.Errorf("want nothing in flight, got %v", n)
		}
		own = llama.counters(t)
		if got := page.Sum("replayd_engine_generation_tokens_total"); int(got) != own.output {
			return fmt.Errorf("want the engine's %d output tokens passed on, got %v", own.output, got)
		}
		return nil
	})
	output, prompt, cached := page.Sum("replayd_tokens_total", "output"), page.Sum("replayd_tokens_total", "prompt"), page.Sum("replayd_tokens_total", "cached")
	enginePrompt, engineHits := page.Sum("replayd_engine_prompt_tokens_total"), page.Sum("replayd_engine_prefix_cache_hits_tokens_total")
	// The probe that measures the chat template: its prompt is a word and the template, its answer one token.
	probe := enginePrompt - (prompt - cached)
	t.Logf("%.0f requests in %v: client %.0f output, %.0f prompt of which %.0f cached; engine %.0f output, %.0f prompt computed, %.0f cached; the probe's prompt %.0f",
		page.Sum("replayd_requests_total", "ok"), length, output, prompt, cached,
		page.Sum("replayd_engine_generation_tokens_total"), enginePrompt, engineHits, probe)
	if finished, dropped := page.Ended("w"); finished == 0 || page.Sum("replayd_requests_total", "ok") != finished || dropped != page.Sum("replayd_requests_dropped_total", "paused") {
		t.Errorf("want all requests ok, got %v finished and %v dropped", finished, dropped)
	}
	if got := page.Sum("replayd_engine_generation_tokens_total"); got != output+1 {
		t.Errorf("want the engine's output tokens to be the client's and one of the probe, got %v and %v", got, output)
	}
	if engineHits != cached {
		t.Errorf("want the engine's cached tokens to be the client's, got %v and %v", engineHits, cached)
	}
	// The probe measures the tokens of its prompt, less its one word.
	found := regexp.MustCompile(`"chat template measured".* tokens=(\d+) `).FindStringSubmatch(p.Said(t))
	if len(found) == 0 || found[1] != fmt.Sprint(probe-1) {
		t.Errorf("want one probe of a word and the template beside the client's prompts, got %v tokens and %q in the log", probe, found)
	}
	if own.prompt != int(enginePrompt+engineHits) {
		t.Errorf("want the engine's prompt tokens passed on: it says %d, the page %v", own.prompt, enginePrompt+engineHits)
	}
	p.Term(t)
}
