package replay

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/openai"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

// Every kind of row carries the request fields. The salt decides whether cache_salt differs per loop, is constant or is
// absent.
func TestRequestFields(t *testing.T) {
	type fields struct {
		Priority *int64
		Salt     *string `json:"cache_salt"`
		User     string
	}
	for _, c := range []struct {
		salt  synth.Salt
		salts int // distinct values in two loops of three rows
	}{{"", 0}, {synth.SaltNone, 0}, {"fixed:a", 1}, {synth.SaltLoop, 2}, {synth.SaltSession, 6}} {
		t.Run(string(c.salt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{}
				src := source0(
					trace.Record{InputTokens: 5},
					trace.Record{Text: "own", Extra: json.RawMessage(`{"priority":1,"user":"row"}`)},
					trace.Record{Payload: json.RawMessage(`{"prompt":"p","priority":2}`)},
				)
				loops := schedule.Options{Mode: schedule.Loops, Align: schedule.Start, Every: time.Minute}
				b := newBench(t, src, loops, f, func(w *Workload) {
					w.Request = RequestFields{RequestFields: openai.RequestFields{Priority: new(int64(9)), User: "replay", CacheSalt: "not the runner's"}, Salt: c.salt}
					w.Rows = 6
				})
				b.run(t, t.Context(), t.Context())
				want(t, "bodies", len(f.bodies)-1, 6) // one body is that of the model list request
				salts := map[string]int{}
				for id, body := range f.bodies {
					if id == "" {
						continue
					}
					var m fields
					if err := json.Unmarshal(body, &m); err != nil {
						t.Fatal(err)
					}
					if m.Priority == nil || *m.Priority != 9 || m.User != "replay" {
						t.Errorf("%s: want priority 9 of replay, got %s", id, body)
					}
					if m.Salt != nil {
						salts[*m.Salt]++
					}
				}
				want(t, "salts", len(salts), c.salts)
				for salt, n := range salts {
					want(t, "rows with salt "+salt, n, 6/c.salts)
				}
			})
		})
	}
}
