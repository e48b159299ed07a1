package result

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"replayd/internal/measure"
)

// A Config is AIPerf's input_config as far as reports use it.
type Config struct {
	Endpoint struct {
		Models    []string `json:"model_names,omitempty"`
		Type      string   `json:"type,omitempty"`
		Streaming bool     `json:"streaming"`
	} `json:"endpoint"`
	Load struct {
		Concurrency int     `json:"concurrency,omitempty"`
		Rate        float64 `json:"request_rate,omitempty"`
	} `json:"loadgen"`
	Output struct {
		Slice float64 `json:"slice_duration,omitempty"` // seconds
	} `json:"output"`
	Input struct {
		Goodput map[string]float64 `json:"goodput,omitempty"`
	} `json:"input"`
	Command string `json:"cli_command,omitempty"`

	// replayd's own fields.
	GPUs        int       `json:"gpus,omitempty"`
	Percentiles []float64 `json:"percentiles,omitempty"`
	Makespan    float64   `json:"session_makespan,omitempty"` // seconds; the bound of good sessions
}

// ConfigOf returns settings in AIPerf's form.
func ConfigOf(s Settings) Config {
	var c Config
	if s.Model != "" {
		c.Endpoint.Models = []string{s.Model}
	}
	c.Endpoint.Type, c.Endpoint.Streaming = s.Endpoint, s.Streamed
	c.Load.Concurrency, c.Load.Rate = s.Concurrency, s.Rate
	c.Output.Slice = s.Slice.Seconds()
	if len(s.SLO) > 0 {
		c.Input.Goodput = map[string]float64{}
		for _, b := range s.SLO {
			c.Input.Goodput[b.Quantity.Tag()] = b.Limit
		}
	}
	c.Makespan = s.Session.Makespan.Seconds()
	c.Command, c.GPUs, c.Percentiles = s.Command, s.GPUs, s.Percentiles
	return c
}

// maxSettings is the most bytes read from a file of figures.
const maxSettings = 64 << 20

// beginOf returns the beginning of a text, at most maxSaid bytes.
func beginOf(text string) string { return text[:min(len(text), maxSaid)] }

// ReadJSON reads what the requests of a run do not tell from profile_export_aiperf.json, AIPerf's or replayd's: the
// settings, the ledger, the prefix cache, and whether the run was stopped. It leaves out invalid values, and Partial
// says so.
func ReadJSON(r io.Reader, name string) (Run, error) {
	var file struct {
		Config struct {
			Config
			Model string `json:"model"`
		} `json:"input_config"`
		Cut    bool            `json:"was_cancelled"`
		Ledger *measure.Ledger `json:"ledger"`
		Cache  *Cache          `json:"prefix_cache"`
		Read   *Reading        `json:"reading"`

		Lengths struct {
			NotExact string `json:"not_exact"`
		} `json:"lengths"`
	}
	if err := json.NewDecoder(io.LimitReader(r, maxSettings)).Decode(&file); err != nil {
		return Run{}, fmt.Errorf("%s: want a profile_export_aiperf.json: %w", name, jsonFault(err))
	}
	c := file.Config
	s := Settings{
		Command: c.Command, Model: c.Model, Endpoint: c.Endpoint.Type, Concurrency: c.Load.Concurrency, Rate: c.Load.Rate,
		GPUs: c.GPUs, Percentiles: c.Percentiles, Streamed: c.Endpoint.Streaming,
		NotExact: beginOf(file.Lengths.NotExact),
	}
	if len(c.Endpoint.Models) > 0 {
		s.Model = c.Endpoint.Models[0]
	}
	if d := c.Output.Slice; d > 0 && d < math.MaxInt32 {
		s.Slice = time.Duration(d * float64(time.Second))
	}
	if m := c.Makespan; m > 0 && m < math.MaxInt32 {
		s.Session.Makespan = time.Duration(m * float64(time.Second))
	}
	run := Run{Cut: file.Cut, Cache: file.Cache, Reading: file.Read}
	if a := run.Reading; a != nil {
		a.Reason, a.First = beginOf(a.Reason), beginOf(a.First)
	}
	if c := run.Cache; c != nil && (c.Cached < 0 || c.Cached > c.Prompt || c.Explained != nil && *c.Explained < 0) {
		run.Cache = nil
		run.Partial = append(run.Partial, fmt.Sprintf("%s: prefix_cache: want 0 ≤ cached_tokens ≤ prompt_tokens, got %d and %d", name, c.Cached, c.Prompt))
	}
	for _, tag := range slices.Sorted(maps.Keys(c.Input.Goodput)) {
		if q, known := measure.QuantityOf(tag); known {
			s.SLO = append(s.SLO, measure.Bound{Quantity: q, Limit: c.Input.Goodput[tag]})
		} else {
			run.Partial = append(run.Partial, fmt.Sprintf("%s: no request is judged by the bound on %q: want %s", name, tag, measure.QuantityNames()))
		}
	}
	s.SLO = measure.NewSLO(s.SLO...)
	run.Settings = s
	if l := file.Ledger; l != nil {
		if err := balanced(*l); err == nil {
			run.Ledger = l
		} else {
			run.Partial = append(run.Partial, fmt.Sprintf("%s: %v", name, err))
		}
	}
	return run, nil
}
