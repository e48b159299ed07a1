package report

import (
	"bytes"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"replayd/internal/chart"
	"replayd/internal/result"
	"replayd/test/resulttest"
)

// written returns a page without the style and the script that all pages share.
func written(t *testing.T, p Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(b.String(), "<style></style>")
	text = regexp.MustCompile(`sha256-[^ ]*`).ReplaceAllString(text, "sha256-")
	return regexp.MustCompile(`(?s)<script>.*?</script>`).ReplaceAllString(text, "<script></script>")
}

func TestPageGolden(t *testing.T) {
	run := resulttest.Run(t)
	run.Name = "example"
	one := HTML([]result.Run{run})
	one.Made = "Made by a test."
	resulttest.Golden(t, "page.html", []byte(withoutShapes(written(t, one))))

	slower := run
	slower.Name, slower.Rows = "slower", nil
	for _, r := range run.Rows {
		r.TTFT, r.Latency = r.TTFT*1.5, r.Latency*1.2
		slower.Rows = append(slower.Rows, r)
	}
	two := HTML([]result.Run{run, slower})
	two.Theme = "dark"
	resulttest.Golden(t, "compared.html", []byte(withoutShapes(written(t, two))))
}

// withoutShapes removes plot paths and tooltip data, which TestPlotGolden covers.
func withoutShapes(text string) string {
	text = regexp.MustCompile(` d="[^"]*"`).ReplaceAllString(text, "")
	return regexp.MustCompile(`(?s)(<script type="application/json"[^>]*>).*?</script>`).ReplaceAllString(text, "$1</script>")
}

// Each kind of series, with fixed and with automatic scales.
func TestPlotGolden(t *testing.T) {
	nan := math.NaN()
	p := Page{Title: "All that can be drawn", Sections: []Section{{Title: "Plots", Plots: []chart.Plot{
		{Title: "Lines with a gap", X: chart.Axis{Label: "time", Unit: "s"}, Y: chart.Axis{Label: "latency", Unit: "ms"}, Series: []chart.Series{
			{Kind: chart.Area, X: []float64{0, 60, 120, 180}, Y: []float64{20, nan, 30, 25}, Low: []float64{10, 5, 12, 14}},
			{Name: "p50", X: []float64{0, 60, 120, 180}, Y: []float64{10, nan, 12, 14}},
		}},
		{Title: "Points", X: chart.Axis{Label: "per user", Unit: "tokens/s"}, Y: chart.Axis{Label: "output", Unit: "tokens/s", Log: true}, Series: []chart.Series{
			{Kind: chart.Points, X: []float64{10, 20}, Y: []float64{2000, 900}, Text: []string{"c=100", "c=10"}},
		}, Marks: []chart.Mark{{Name: "asked for", At: 1000}}, Table: &chart.Table{
			Columns: chart.Columns("", "per user", "output"),
			Rows:    [][]string{{"c=100", "10 tokens/s", "2,000 tokens/s"}, {"c=10", "20 tokens/s", "900 tokens/s"}},
		}},
		{Title: "A cloud", X: chart.Axis{Label: "input", Unit: "tokens"}, Y: chart.Axis{Label: "TTFT", Unit: "ms"}, Series: []chart.Series{{Kind: chart.Cloud, X: []float64{1, 2, 3, nan}, Y: []float64{1, 2, 3, 4}}}},
		{Title: "Nothing"},
		chart.Histogram("Whole numbers", chart.Axis{Label: "turns"}, []float64{1, 1, 1, 2, 3, 3}),
	}}}}
	resulttest.Golden(t, "plots.html", []byte(written(t, p)))
}

// Texts of a server, a trace or a folder name never become markup, and no link leads out of the page.
func TestPageEscapes(t *testing.T) {
	const bad = `</script></title><img src=x onerror=alert(1)>"'{{.}}`
	run := resulttest.Run(t)
	run.Name, run.Settings.Command, run.Settings.Model, run.Partial = bad, bad, bad, []string{bad}
	for i := range run.Rows {
		run.Rows[i].Error, run.Rows[i].Conversation = bad, bad
	}
	run.ServerSeries[0].Name, run.ServerSeries[2].Help, run.ServerSeries[2].Unit = bad, bad, bad
	other := run
	other.Name = bad + "2"
	for _, p := range []Page{HTML([]result.Run{run}), HTML([]result.Run{run, other})} {
		text := written(t, p)
		if strings.Contains(text, "<img") || !strings.Contains(text, "&lt;img") {
			t.Error("want what comes from outside escaped")
		}
		if found := regexp.MustCompile(`(?i)\b(?:src|href|action|url)\s*[=(]\s*["']?(?:https?:|//)[^"' ]*`).FindString(text); found != "" {
			t.Errorf("it leads out: %s", found)
		}
	}
}

// A run without requests, or with failures only, has a page that says so.
func TestPageOfLittle(t *testing.T) {
	if text := written(t, HTML([]result.Run{{Name: "none"}})); !strings.Contains(text, "There is no request in this run.") {
		t.Error("want it said that there is none")
	}
	run := resulttest.Run(t)
	var failed []result.Row
	for _, r := range run.Rows {
		if r.Outcome.Failed() {
			failed = append(failed, r)
		}
	}
	run.Rows = failed
	if text := written(t, HTML([]result.Run{run})); !strings.Contains(text, "did not end ok") {
		t.Error("want the failures")
	}
	run.Rows = failed[:1]
	run.Settings.Slice = time.Second
	written(t, HTML([]result.Run{run, {Name: "none"}}))
	written(t, HTML([]result.Run{{Name: "none"}, {Name: "none either"}}))
}

type fullDisk struct{}

var errFullDisk = errors.New("no space left on device")

func (fullDisk) Write([]byte) (int, error) { return 0, errFullDisk }

func TestPageWriteFails(t *testing.T) {
	if err := HTML([]result.Run{resulttest.Run(t)}).Write(fullDisk{}); !errors.Is(err, errFullDisk) {
		t.Errorf("got %v, want %v", err, errFullDisk)
	}
}
