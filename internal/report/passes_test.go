package report

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Turns of one pass are one conversation, those of the next another.
func TestCorrelation(t *testing.T) {
	for id, want := range map[string]string{
		"run/0/4": "run/0/s", "run/0/5": "run/0/s", "run/0/4.1": "run/0/s.1", "run/0/5.1": "run/0/s.1", "a.b/7/1": "a.b/7/s", "run/warmup/0": "run/warmup/s",
	} {
		if got := correlation(id, "s"); got != want {
			t.Errorf("%s: want %s, got %s", id, want, got)
		}
	}
}

// Two hosts have a GPU 0 each.
func TestTelemetryOfTwoHosts(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	var rows []Beside
	for _, uuid := range []string{"GPU-a", "GPU-b"} {
		rows = append(rows, Beside{
			Source: "http://dcgm", Name: "gpu_power_watts", Unit: "watts", GPU: true, Times: []time.Time{at}, Values: []float64{100}, Kind: Gauge,
			Labels: map[string]string{"gpu": "0", "uuid": uuid},
		})
	}
	text, err := json.Marshal(telemetry(rows))
	if err != nil || !strings.Contains(string(text), "GPU-a") || strings.Count(string(text), `"gpu_uuid":"GPU-b"`) != 1 {
		t.Errorf("want both GPUs, got %s: %v", text, err)
	}
}

// The count by merging is the definition's, over random values with ties.
func TestMannKendallByPairs(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		values := make([]float64, rng.IntN(60))
		for i := range values {
			values[i] = float64(rng.IntN(1 + rng.IntN(40)))
		}
		s := 0
		for i := range values {
			for j := i + 1; j < len(values); j++ {
				s += cmp.Compare(values[j], values[i])
			}
		}
		if got := NewMannKendall(values).S; got != s {
			t.Fatalf("seed %d: want S %d, got %d", seed, s, got)
		}
	}
}
