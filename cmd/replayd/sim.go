package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"replayd/internal/cli"
	"replayd/internal/sim"
)

func newSim(w *world) *cobra.Command {
	o := sim.Defaults()
	listen, logPath := "127.0.0.1:8000", ""
	c := &cobra.Command{
		Use: "sim", Short: "Run a simulated engine with a GPU",
		Long: `Run a simulated engine with a GPU: it has slots, a queue, prefill and decode
rates, and a prefix cache.

It answers /v1/chat/completions, /v1/completions and /v1/models, has vLLM's
series on /metrics, and dcgm-exporter's on /dcgm/metrics.`,
		Example: "  replayd sim --web.listen-address 127.0.0.1:8000 --ttft 200ms --itl 20ms\n  replayd sim --slots 16 --fault-429 0.05 --log requests.jsonl",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return wrongInput(inFlags(err, simFlagOf))
			}
			if logPath != "" {
				f, err := os.OpenFile(logPath, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
				if err != nil {
					return wrongInput(fmt.Errorf("--log: %w", err))
				}
				defer f.Close()
				o.Log = f
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("--web.listen-address: %w", err)
			}
			return simulate(c.Context(), o, l, func() {
				fmt.Fprintf(w.out, "simulated engine %q at http://%s\n", o.Model, l.Addr())
			})
		},
	}
	var help cli.Headings
	f := help.Under("Server")
	f.StringVar(&listen, "web.listen-address", listen, "address of the API, host:port")
	f.StringVar(&logPath, "log", "", "file to append a JSON line per request to")
	f.BoolVar(&o.LogChunks, "log-chunks", false, "log the time before each chunk's write")
	simFlags(&help, &o)
	help.Attach(c)
	return c
}

// simFlags adds the flags of the simulated engine.
func simFlags(help *cli.Headings, o *sim.Options) {
	f := help.Under("Engine")
	f.StringVar(&o.Model, "model", o.Model, "name of the model")
	f.StringSliceVar(&o.Adapters, "lora", nil, "LoRA adapters in /v1/models")
	f.IntVar(&o.Slots, "slots", o.Slots, "requests in prefill and decode at once")
	f.IntVar(&o.MaxQueue, "max-queue", o.MaxQueue, "most waiting requests; more get status 503")
	f.IntVar(&o.MaxModelLen, "max-model-len", o.MaxModelLen, "most tokens of a prompt and its output")
	f.IntVar(&o.TemplateTokens, "template-tokens", o.TemplateTokens, "tokens of the chat template")
	f.IntVar(&o.CacheTokens, "cache-tokens", o.CacheTokens, "tokens in the KV cache; 0: no prefix cache")
	f.IntVar(&o.BlockTokens, "block-tokens", o.BlockTokens, "tokens in a block of the prefix cache")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of faults, noise, words and lengths")

	f = help.Under("Speed")
	f.Float64Var(&o.PrefillRate, "prefill-rate", o.PrefillRate, "prompt tokens per second")
	f.Float64Var(&o.DecodeRate, "decode-rate", o.DecodeRate, "output tokens per second of a single stream")
	f.Float64Var(&o.BatchCost, "batch-cost", o.BatchCost, "relative time that each further stream adds to a token")
	f.Float64Var(&o.PreemptCost, "preempt-cost", o.PreemptCost, "relative time added to a token at twice --cache-tokens in use")
	f.DurationVar(&o.TTFT, "ttft", 0, "fixed prefill time, such as 200ms; 0: by --prefill-rate")
	f.DurationVar(&o.ITL, "itl", 0, "fixed time of a further token, such as 20ms; 0: by --decode-rate")
	f.IntVar(&o.StepTokens, "step-tokens", 0, "shared steps of at most so many tokens; 0: prompts one at a time")
	f.IntVar(&o.ReasoningTokens, "reasoning-tokens", 0, "tokens of reasoning before the text of each chat answer")
	f.IntVar(&o.ChunkTokens, "chunk-tokens", o.ChunkTokens, "tokens in each chunk after the first")

	f = help.Under("Noise, by --seed and request id")
	f.Float64Var(&o.Jitter, "jitter", 0, "standard deviation of ln(time) of prefill and decode, such as 0.1")
	f.Float64Var(&o.SlowShare, "slow-share", 0, "share of requests that are slow")
	f.Float64Var(&o.SlowFactor, "slow-factor", o.SlowFactor, "how many times as long slow requests take")

	f = help.Under("Faults, as shares of all requests, at most 1 together")
	f.Float64Var(&o.Faults.Error500, "fault-500", 0, "answered with status 500")
	f.Float64Var(&o.Faults.Error429, "fault-429", 0, "answered with status 429")
	f.Float64Var(&o.Faults.Cut, "fault-cut", 0, "cut in the middle of the answer")
	f.Float64Var(&o.Faults.Garbled, "fault-garbled", 0, "with a data line that is not JSON")
	f.Float64Var(&o.Faults.Empty, "fault-empty", 0, "ended without content")
	f.Float64Var(&o.Faults.Stalled, "fault-stalled", 0, "stopped in the middle, with the connection open")
	f.Float64Var(&o.Faults.ErrorEvent, "fault-error-event", 0, "with an error event in the stream")
}

// simFlagOf maps fields of sim.Options to flags, for errors.
var simFlagOf = map[string]string{
	"Model": "model", "Slots": "slots", "MaxQueue": "max-queue", "MaxModelLen": "max-model-len",
	"PrefillRate": "prefill-rate", "DecodeRate": "decode-rate", "BatchCost": "batch-cost", "PreemptCost": "preempt-cost", "TTFT": "ttft", "ITL": "itl",
	"StepTokens": "step-tokens", "Jitter": "jitter", "SlowShare": "slow-share", "SlowFactor": "slow-factor",
	"ReasoningTokens": "reasoning-tokens", "ChunkTokens": "chunk-tokens", "TemplateTokens": "template-tokens", "CacheTokens": "cache-tokens",
	"BlockTokens": "block-tokens", "Faults": "fault-*", "Faults.Error500": "fault-500", "Faults.Error429": "fault-429",
	"Faults.Cut": "fault-cut", "Faults.Garbled": "fault-garbled", "Faults.Empty": "fault-empty",
	"Faults.Stalled": "fault-stalled", "Faults.ErrorEvent": "fault-error-event",
}

// inFlags replaces the name at the start of each line of an error with its flag.
func inFlags(err error, flagOf map[string]string) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		name, rest, _ := strings.Cut(line, ": ")
		if strings.Contains(name, " ") {
			continue // an error of a row, not of a flag
		}
		lines[i] = "--" + cmp.Or(flagOf[name], name) + ": " + rest
	}
	return errors.New(strings.Join(lines, "\n"))
}

// simulate serves an engine on l until ctx is cancelled. Streams may then go on for a second.
func simulate(ctx context.Context, o sim.Options, l net.Listener, started func()) error {
	e, err := sim.New(o)
	if err != nil {
		return errors.Join(wrongInput(err), l.Close())
	}
	server := e.Server()
	stopped := make(chan struct{})
	detach := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, done := context.WithTimeout(context.Background(), time.Second)
		defer done()
		if server.Shutdown(grace) != nil {
			server.Close() // stopping an engine cuts its streams
		}
	})
	started()
	err = server.Serve(l)
	if detach() {
		return err // the server ended by itself
	}
	<-stopped // Serve does not wait for answers in progress
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
