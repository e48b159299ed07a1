package openai

import (
	"os/exec"
	"testing"
)

// The address can be pasted into a shell between single quotes: it has no key, and nothing in it runs.
func TestBaseURL(t *testing.T) {
	for _, c := range [][2]string{
		{"vllm:8000", "http://vllm:8000/v1"},
		{"https://api.example/v1beta?key=s3cret", "https://api.example/v1beta"},
		{"http://[::1]:8000/it's/$(touch%20x)?api_key=s3cret", "http://[::1]:8000/it%27s/$(touch%20x)/v1"},
		{"https://azure.example/openai/deployments/d/chat/completions?api-version=1", "https://azure.example/openai/deployments/d"},
	} {
		e, err := parseURL(c[0])
		if err != nil {
			t.Fatal(err)
		}
		got := e.baseURL()
		if got != c[1] {
			t.Errorf("%s: want %s, got %s", c[0], c[1], got)
		}
		said, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s '"+got+"'").Output()
		if err != nil || string(said) != got {
			t.Errorf("a shell has %q, %v", said, err)
		}
	}
}
