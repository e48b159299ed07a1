package export

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"replayd/internal/result"
)

// Two hosts each have a GPU 0.
func TestTelemetryOfTwoHosts(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	var rows []result.ServerSeries
	for _, uuid := range []string{"GPU-a", "GPU-b"} {
		rows = append(rows, result.ServerSeries{
			Source: "http://dcgm", Name: "gpu_power_watts", Unit: "watts", GPU: true, Times: []time.Time{at}, Values: []float64{100}, Kind: result.Gauge,
			Labels: map[string]string{"gpu": "0", "uuid": uuid},
		})
	}
	text, err := json.Marshal(telemetry(rows))
	if err != nil || !strings.Contains(string(text), "GPU-a") || strings.Count(string(text), `"gpu_uuid":"GPU-b"`) != 1 {
		t.Errorf("want both GPUs, got %s: %v", text, err)
	}
}
