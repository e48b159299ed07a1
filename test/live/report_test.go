//go:build live

package live

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/internal/report"
	"replayd/internal/result"
)

// drawn is true when every cloud of points is drawn on its canvas.
const drawn = `document.readyState === 'complete' && document.querySelectorAll('.cloud').length === document.querySelectorAll('.plot.drawn').length`

// onDisk writes a page to a file and returns its address.
func onDisk(t *testing.T, name string, p report.Page) (address string, bytes int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".html")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := p.Write(f); err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return "file://" + path, info.Size()
}

// TestReport checks the page of one run and that of several, from a phone's to a desktop's width, in both color
// schemes, with all tables open.
func TestReport(t *testing.T) {
	b := startChromium(t)
	one := synthetic("a run", 3000, 100, 1)
	sweep := []result.Run{one}
	for _, c := range []int{10, 50, 200, 500} {
		sweep = append(sweep, synthetic(fmt.Sprint("concurrency-", c), 600, c, uint64(c)))
	}
	for name, runs := range map[string][]result.Run{"one": {one}, "two": {one, sweep[1]}, "sweep": sweep} {
		address, _ := onDisk(t, name, report.HTML(runs))
		for _, width := range []int{1440, 500, 320} {
			for _, scheme := range []string{"light", "dark"} {
				t.Run(fmt.Sprintf("%s-%d-%s", name, width, scheme), func(t *testing.T) {
					p := b.open(t, address, width, scheme)
					p.until(t, drawn)
					p.picture(t, fmt.Sprintf("report-%s-%d-%s.png", name, width, scheme))
					p.eval(t, `document.querySelectorAll('details').forEach(d => { d.open = true })`, nil)
					p.fits(t, width)
					p.readable(t)
					p.apart(t)
					p.alone(t, address)
				})
			}
		}
	}
}

// leave runs a statement that loads another page, and waits until that page has taken the place of this one. The load event would
// not do: that of this page may still be on its way.
func (p *tab) leave(t *testing.T, statement string) {
	t.Helper()
	before := len(p.told("Page.frameNavigated"))
	p.eval(t, "setTimeout(() => { "+statement+" })", nil)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	late := time.After(20 * time.Second)
	for len(p.told("Page.frameNavigated")) == before {
		select {
		case <-look.C:
		case <-late:
			t.Fatal("no other page within 20 s")
		}
	}
}

// apart: no two labels of one plot overlap.
func (p *tab) apart(t *testing.T) {
	t.Helper()
	var over []string
	p.eval(t, `[...document.querySelectorAll('.picture')].flatMap(f => ['.x', '.y', '.end', '.up i'].flatMap(kind => {
		const boxes = [...f.querySelectorAll(kind)].filter(e => e.checkVisibility()).map(e => [e.getBoundingClientRect(), e.textContent])
		return boxes.flatMap(([a, one], i) => boxes.slice(i + 1).filter(([b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
			.map(([, other]) => f.querySelector('h3').textContent + ': ' + one + ' / ' + other))
	}))`, &over)
	for _, names := range over {
		t.Errorf("one over the other: %s", names)
	}
}

// alone: the browser logs nothing and has loaded only the one file.
func (p *tab) alone(t *testing.T, address string) {
	t.Helper()
	for _, name := range []string{"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"} {
		for _, e := range p.told(name) {
			t.Errorf("%s: %s", name, e)
		}
	}
	for _, e := range p.told("Network.requestWillBeSent") {
		var sent struct{ Request struct{ URL string } }
		if err := json.Unmarshal(e, &sent); err != nil {
			t.Fatal(err)
		}
		if url := sent.Request.URL; !strings.HasPrefix(url, address) && !strings.HasPrefix(url, "data:") {
			t.Errorf("it asked for %s", url)
		}
	}
}

// TestReportFigures compares the figures of the page's script with Go's.
func TestReportFigures(t *testing.T) {
	b := startChromium(t)
	run := synthetic("a run", 5000, 100, 3)
	address, _ := onDisk(t, "figures", report.HTML([]result.Run{run}))
	p := b.open(t, address, 1440, "light")
	p.until(t, drawn)
	figures := result.Aggregate(run.Rows, run.Settings)
	for i, tag := range []string{"time_to_first_token", "request_latency"} {
		var got struct{ N, P50, P90, P99 float64 }
		p.eval(t, fmt.Sprintf(`JSON.parse(document.querySelectorAll('.plot.drawn')[%d].dataset.figures)`, i), &got)
		m, _ := figures.Metric(tag)
		if int(got.N) != m.Of.N() {
			t.Errorf("%s: %v requests, want %d", tag, got.N, m.Of.N())
		}
		for q, v := range map[float64]float64{50: got.P50, 90: got.P90, 99: got.P99} {
			if want := m.Of.Percentile(q); math.Abs(v-want) > 1e-6*want { // the precision of a Float32
				t.Errorf("%s: p%v is %v, want %v", tag, q, v, want)
			}
		}
	}
	press := func(key string, code int) {
		t.Helper()
		for _, kind := range []string{"keyDown", "keyUp"} {
			p.do(t, "Input.dispatchKeyEvent", object{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}, nil)
		}
	}
	// By keyboard: the tooltip at the end of a plot over time shows the last row of the table behind it, if requests
	// were sent then.
	var read struct{ Text, Row string }
	p.eval(t, `document.querySelector('#section-2 .plot').focus()`, nil)
	press("End", 35)
	p.eval(t, `(f => { f.querySelector('details').open = true; const c = [...f.querySelectorAll('tbody tr')].at(-1).cells; return { text: f.querySelector('.read').textContent, row: 'p50 ' + c[2].textContent + ', p90 ' + c[3].textContent + ', p99 ' + c[4].textContent } })(document.querySelector('#section-2 .picture'))`, &read)
	if !strings.HasSuffix(read.Text, ": "+read.Row) {
		t.Errorf("read %q, the table's last row has %q", read.Text, read.Row)
	}
	// A selection of a cloud: the points within it, counted again.
	p.eval(t, `document.querySelector('.plot.drawn').focus()`, nil)
	for range 6 {
		press("ArrowRight", 39)
	}
	var part struct {
		N       float64
		Text    string
		Lo, Hi  float64
		Visible bool
	}
	p.eval(t, `(plot => { const c = JSON.parse(plot.closest('figure').querySelector('.cloud').textContent), box = plot.querySelector('.chosen')
		const at = v => c.XLog ? c.XLo * (c.XHi / c.XLo) ** v : c.XLo + (c.XHi - c.XLo) * v
		const from = parseFloat(box.style.left) / 100, width = parseFloat(box.style.width) / 100
		return { n: JSON.parse(plot.dataset.figures).n, text: plot.closest('figure').querySelector('.read').textContent, lo: at(from), hi: at(from + width), visible: !box.hidden }
	})(document.querySelector('.plot.drawn'))`, &part)
	want := 0
	for _, r := range run.Rows {
		if x := float64(r.Input); !math.IsNaN(r.TTFT) && x >= part.Lo && x <= part.Hi {
			want++
		}
	}
	if int(part.N) != want || want == 0 || want == len(run.Rows) || !part.Visible || !strings.Contains(part.Text, "p99") {
		t.Errorf("%+v, want %d requests", part, want)
	}
	p.alone(t, address)
}

// TestReportLarge: 100,000 requests in a file below 10 MB, whose first plot is drawn within 2 s.
func TestReportLarge(t *testing.T) {
	b := startChromium(t)
	run := synthetic("100,000 requests", 100_000, 400, 7)
	begun := time.Now()
	page := report.HTML([]result.Run{run})
	address, bytes := onDisk(t, "large", page)
	made := time.Since(begun)
	p := b.open(t, address, 1440, "light", func(p *tab) {
		p.do(t, "Page.addScriptToEvaluateOnNewDocument", object{"source": `const look = () => document.querySelectorAll('.cloud').length && document.querySelectorAll('.plot.drawn').length === document.querySelectorAll('.cloud').length && document.readyState === 'complete' ? window.allDrawn = performance.now() : requestAnimationFrame(look); requestAnimationFrame(look)`}, nil)
	})
	p.until(t, "window.allDrawn")
	var seen struct{ First, All float64 } // ms since the navigation
	p.eval(t, `({ first: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 1e9, all: window.allDrawn })`, &seen)
	t.Logf("100,000 requests: made in %v, %.2f MB, first picture after %.0f ms, all %.0f ms", made.Round(time.Millisecond), float64(bytes)/1e6, seen.First, seen.All)
	if bytes > 10<<20 || seen.First > 2000 || seen.All > 10_000 {
		t.Errorf("%d bytes, first picture after %.0f ms, all after %.0f ms; want at most 10 MiB, 2 s and 10 s", bytes, seen.First, seen.All)
	}
	p.picture(t, "report-large.png")
}

// TestReportWithoutScript: without JavaScript the page has the figures and pictures of clouds.
func TestReportWithoutScript(t *testing.T) {
	b := startChromium(t)
	address, _ := onDisk(t, "plain", report.HTML([]result.Run{synthetic("a run", 3000, 100, 5)}))
	p := b.open(t, address, 1440, "light", func(p *tab) {
		p.do(t, "Emulation.setScriptExecutionDisabled", object{"value": true}, nil)
	})
	p.loaded(t)
	var seen struct{ Pictures, Cells, Tables, Canvases, Stops int }
	p.eval(t, `({ pictures: document.querySelectorAll('.picture svg path').length, cells: [...document.querySelectorAll('.cell')].filter(c => c.checkVisibility()).length,
		tables: document.querySelectorAll('.picture table').length, canvases: document.querySelectorAll('canvas').length, stops: document.querySelectorAll('.plot[tabindex]').length })`, &seen)
	if seen.Pictures < 40 || seen.Cells < 5 || seen.Tables < 12 || seen.Canvases > 0 || seen.Stops > 0 {
		t.Errorf("%+v", seen)
	}
	p.picture(t, "report-plain.png")
}

// TestDashboard selects runs and filters as a person does.
func TestDashboard(t *testing.T) {
	b := startChromium(t)
	dir := t.TempDir()
	for i, name := range []string{"first", "second"} {
		writeExport(t, filepath.Join(dir, name), synthetic(name, 400, 20, uint64(i+1)))
	}
	sources, err := result.FindRuns([]string{dir}, true)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(report.NewDashboard(sources, "", "", "127.0.0.1"))
	t.Cleanup(s.Close)
	for _, width := range []int{1440, 320} {
		p := b.open(t, s.URL+"/", width, "dark")
		p.until(t, `document.querySelector('h1')?.textContent === '2 runs side by side'`)
		p.fits(t, width)
		p.readable(t)
		p.leave(t, `document.querySelector('input[value=second]').click(); document.querySelector('select[name=outcome]').value = 'ok'; document.querySelector('input[name=max_input]').value = '800'; document.querySelector('form button').click()`)
		p.until(t, `document.querySelector('h1')?.textContent === 'first'`)
		p.until(t, drawn)
		var most float64
		p.eval(t, `Math.max(...[...document.querySelectorAll('#section-1 tbody tr')].filter(r => r.cells[0].textContent.startsWith('Input Sequence Length')).map(r => +[...r.cells].at(-1).textContent.replaceAll(',', '')))`, &most)
		if !(most > 0 && most <= 800) {
			t.Errorf("the longest input is %v, want at most 800", most)
		}
		p.fits(t, width)
		p.readable(t)
		p.alone(t, s.URL)
	}
}
