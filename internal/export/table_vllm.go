package export

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"replayd/internal/result"
	"replayd/internal/terminal"
)

// WriteVLLMTable prints a run in the layout of vLLM's serving benchmark (benchmarks/benchmark_serving.py), which
// TraceReplay also prints, with TraceReplay's percentiles. The duration is from the first send to the last end,
// whatever the outcome. TPOT is (latency − TTFT) / (output tokens − 1). ITL has one value per gap between chunks, over
// all requests. Std is the population standard deviation.
func WriteVLLMTable(w io.Writer, r result.Run) error {
	f := r.Statistics()
	value := func(tag string) float64 { m, _ := f.Metric(tag); return m.Value }
	input, output := value("total_isl"), value("total_osl")
	seconds := float64(f.Last-f.First) / 1e9
	out := &strings.Builder{}
	line := func(name string, value any) { fmt.Fprintf(out, "%-40s %-10v\n", name, value) }
	number := func(name string, v float64) { line(name, cmp.Or(decimals(v), "N/A")) }
	fmt.Fprintln(out, centered(" Serving Benchmark Result ", '='))
	line("Successful requests:", f.OK)
	number("Benchmark duration (s):", seconds)
	line("Total input tokens:", int(input))
	line("Total generated tokens:", int(output))
	number("Request throughput (req/s):", float64(f.OK)/seconds)
	if len(r.Settings.SLO) > 0 {
		number("Request goodput (req/s):", value("good_request_count")/seconds)
	}
	number("Output token throughput (tok/s):", output/seconds)
	number("Total Token throughput (tok/s):", (input+output)/seconds)

	percentiles := result.Percentiles([]float64{25, 50, 75, 99}, r.Settings.Percentiles)
	for _, q := range []struct{ tag, name, title string }{
		{"time_to_first_token", "TTFT", "Time to First Token"},
		{"inter_token_latency", "TPOT", "Time per Output Token (excl. 1st token)"},
		{"inter_chunk_latency", "ITL", "Inter-token Latency"},
		{"request_latency", "E2EL", "End-to-end Latency"},
	} {
		m, _ := f.Metric(q.tag)
		fmt.Fprintln(out, centered(q.title, '-'))
		number(fmt.Sprintf("Mean %s (ms):", q.name), m.Avg())
		number(fmt.Sprintf("Median %s (ms):", q.name), m.Of.Percentile(50))
		number(fmt.Sprintf("Std %s (ms):", q.name), m.Std())
		for _, p := range percentiles {
			number(fmt.Sprintf("P%s %s (ms):", result.PercentileName(p)[1:], q.name), m.Of.Percentile(p))
		}
	}
	fmt.Fprintln(out, strings.Repeat("=", vllmWidth))
	for _, text := range footer(r, f) {
		fmt.Fprintln(out, text)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

const vllmWidth = 50

// centered centers a heading within a rule. If the space is odd, the right side is longer.
func centered(text string, rule rune) string {
	space := max(0, vllmWidth-terminal.Width(text))
	return strings.Repeat(string(rule), space/2) + text + strings.Repeat(string(rule), space-space/2)
}
