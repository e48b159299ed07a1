//go:build live

// Package live tests the live page in a real Chromium: `make suite NAME=test-live`.
package live

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ready is true after the page's first five seconds: there are cards, figures and plots.
const ready = `document.querySelectorAll('.card').length && document.querySelector('.card .p50')?.getAttribute('d')`

const longName = "a-workload-with-the-longest-name-that-a-configuration-may-have0"

// TestPage checks the page from a phone's to a desktop's width, in both color schemes, with everything open.
func TestPage(t *testing.T) {
	b := startChromium(t)
	_, at := serve(t, "", "chat", "tools", longName)
	for _, width := range []int{1440, 390, 320} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%d-%s", width, scheme), func(t *testing.T) {
				p := b.open(t, "http://"+at+"/live", width, scheme)
				p.until(t, ready)
				// Read at the next tick; prefix hits are of two readings, 5 s apart.
				p.until(t, `[...document.querySelectorAll('.server')].every(s => s.innerText.includes('50 %'))`)
				p.picture(t, fmt.Sprintf("%d-%s.png", width, scheme))
				p.eval(t, `document.querySelectorAll('details').forEach(d => { d.open = true })`, nil)
				p.until(t, `document.querySelectorAll('.outcomes tbody tr').length >= 3 * 20`)
				p.until(t, `document.querySelectorAll('#comparisons tbody tr').length > 3`)
				p.figures(t)
				p.moves(t)
				p.fits(t, width)
				p.labels(t, width)
				p.readable(t)
				p.quiet(t, at)
			})
		}
	}
}

// figures compares what is shown with the page's own data.
func (p *tab) figures(t *testing.T) {
	t.Helper()
	var cards []struct {
		Name, Phase, Flight, Rate, TTFT, Where, Begin, End, Server, Errors, Verdict, Address string
		Silent, Injected                                                                     int
	}
	p.eval(t, `[...document.querySelectorAll('.card')].map(c => ({
		name: c.querySelector('h2').innerText, phase: c.querySelector('summary b').innerText, where: c.querySelector('[data-t=where]').innerText,
		begin: c.querySelector('[data-t=begin]').innerText, end: c.querySelector('[data-t=end]').innerText, server: c.querySelector('.server').innerText.replace(/\s+/g, ' '), flight: c.querySelectorAll('.tiles b')[0].innerText, rate: c.querySelectorAll('.tiles b')[1].innerText,
		ttft: c.querySelectorAll('.latencies dd')[2].innerText, errors: c.querySelector('.errors').innerText,
		verdict: c.querySelector('.why').innerText, address: c.querySelector('[data-t=address]').innerText,
		silent: [...c.querySelectorAll('[role=img]')].filter(i => !i.getAttribute('aria-label')).length,
		injected: c.querySelectorAll('img, script, [onclick], [onerror], .errors i, summary i').length,
	}))`, &cards)
	if len(cards) != 3 || cards[0].Name != "chat" || cards[1].Name != "tools" || cards[2].Name != longName {
		t.Fatalf("cards: got %+v", cards)
	}
	for _, c := range cards {
		if c.Phase != "running" || len(c.Flight) != 2 || !strings.HasSuffix(c.TTFT, "s") || !strings.HasPrefix(c.Where, "loop 7") || c.Begin != "5:00" || c.End != "50:00" ||
			c.Server != "Engine Running 5 Waiting 2 KV cache 25 % Prefix hits 50 % GPUs GPUs 2 Power 612 W Utilization 75 %" {
			t.Errorf("%s: got %+v", c.Name, c)
		}
		if rate, err := strconv.ParseFloat(c.Rate, 64); err != nil || rate < 20 || rate > 41 { // a busy machine has fewer
			t.Errorf("%s: %s requests/s, want about 40, %v", c.Name, c.Rate, err)
		}
		if c.Silent != 0 || c.Injected != 0 {
			t.Errorf("%s: %d pictures without words, %d elements from outside", c.Name, c.Silent, c.Injected)
		}
		if strings.Contains(c.Address, "secret") || !strings.Contains(c.Address, `<b onclick="alert(1)">m</b>`) {
			t.Errorf("%s: address %q", c.Name, c.Address)
		}
	}
	if !strings.Contains(cards[1].Errors, `503: <img src="https://elsewhere.invalid/x" onerror="alert(2)">`) || !strings.Contains(cards[1].Verdict, "33 % of requests failed in the last minute: http_5xx") {
		t.Errorf("of the sick one: verdict %q, errors %q", cards[1].Verdict, cards[1].Errors)
	}
	var first string
	p.eval(t, `document.querySelector('#summary tbody a').innerText`, &first)
	if first != "tools" {
		t.Errorf("the summary begins with %s, want the worst, tools", first)
	}
}

// moves checks that the cursor moves, by the browser's computed style.
func (p *tab) moves(t *testing.T) {
	t.Helper()
	var at []float64
	p.eval(t, `(async () => {
		const cursor = document.querySelector('.cursor'), seen = []
		for (let i = 0; i < 2; i++) {
			seen.push(cursor.getBoundingClientRect().left)
			await new Promise(done => setTimeout(done, 2500))
		}
		return seen
	})()`, &at)
	if at[1] <= at[0] {
		t.Errorf("the cursor was at %v px, and 2.5 s later at %v px", at[0], at[1])
	}
}

// fits: nothing reaches over the screen's edge. The window's
// width does not show that: a phone's grows with its content.
func (p *tab) fits(t *testing.T, width int) {
	t.Helper()
	var got struct {
		Width int
		Wide  []string
	}
	p.eval(t, fmt.Sprintf(`({ width: document.documentElement.scrollWidth, wide: [...document.querySelectorAll('body *')]
		.filter(e => !e.closest('.wide table') && e.getBoundingClientRect().right > %d.5).map(e => e.outerHTML.slice(0, 100)) })`, width), &got)
	if got.Width > width || len(got.Wide) > 0 {
		t.Errorf("%d px wide on a screen of %d: %q", got.Width, width, got.Wide)
	}
}

// labels: the cursor's label has one line, also at the end of the trace.
func (p *tab) labels(t *testing.T, width int) {
	t.Helper()
	var lines float64
	p.eval(t, `(() => {
		const here = document.querySelector('.here'), plot = here.parentElement, at = plot.style.getPropertyValue('--at')
		here.style.transition = 'none'
		plot.style.setProperty('--at', '99%')
		const lines = here.offsetHeight / parseFloat(getComputedStyle(here).fontSize)
		plot.style.setProperty('--at', at)
		here.style.transition = ''
		return lines
	})()`, &lines)
	if lines > 2 {
		t.Errorf("the cursor's label is %.1f letters high on a screen of %d", lines, width)
	}
}

// contrast computes the contrast ratio of WCAG 2.2 for each
// element with its own text, against the backgrounds behind it.
const contrast = `(() => {
	const parse = c => { const [r, g, b, a = 1] = c.match(/[\d.]+/g).map(Number); return { r, g, b, a } }
	const over = (top, under) => ({ r: top.r * top.a + under.r * (1 - top.a), g: top.g * top.a + under.g * (1 - top.a), b: top.b * top.a + under.b * (1 - top.a), a: 1 })
	const behind = e => {
		const layers = []
		for (; e; e = e.parentElement) layers.unshift(parse(getComputedStyle(e).backgroundColor))
		return layers.reduce((under, top) => over(top, under), { r: 255, g: 255, b: 255, a: 1 })
	}
	const light = ({ r, g, b }) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0)
	const all = [...document.querySelectorAll('body *')].filter(e => e.getClientRects().length && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
	return all.map(e => {
		const back = behind(e), text = over(parse(getComputedStyle(e).color), back)
		const [a, b] = [light(back), light(text)].sort((x, y) => y - x)
		return { ratio: (a + 0.05) / (b + 0.05), text: e.outerHTML.slice(0, 80) }
	})
})()`

// readable: all text has enough contrast.
func (p *tab) readable(t *testing.T) {
	t.Helper()
	var texts []struct {
		Ratio float64
		Text  string
	}
	p.eval(t, contrast, &texts)
	if len(texts) < 100 {
		t.Errorf("only %d texts were found", len(texts))
	}
	for _, text := range texts {
		if text.Ratio < 4.5 {
			t.Errorf("contrast %.2f, want at least 4.5: %s", text.Ratio, text.Text)
		}
	}
}

// quiet: the browser logs nothing and has contacted no other host.
func (p *tab) quiet(t *testing.T, host string) {
	t.Helper()
	for _, name := range []string{"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"} {
		for _, e := range p.told(name) {
			t.Errorf("%s: %s", name, e)
		}
	}
	requests := p.told("Network.requestWillBeSent")
	for _, e := range requests {
		var sent struct{ Request struct{ URL string } }
		if err := json.Unmarshal(e, &sent); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(sent.Request.URL, "http://"+host+"/live") {
			t.Errorf("it asked for %s", sent.Request.URL)
		}
	}
	if len(requests) < 7 {
		t.Errorf("%d requests, want the page, its 6 files and the stream", len(requests))
	}
}

// picture keeps a screenshot: `go test -artifacts`.
func (p *tab) picture(t *testing.T, name string) {
	t.Helper()
	var shot struct{ Data string }
	p.do(t, "Page.captureScreenshot", object{"captureBeyondViewport": true}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(t.ArtifactDir(), name), png, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestWorkloadsComeAndGo adds and removes workloads while a viewer watches.
func TestWorkloadsComeAndGo(t *testing.T) {
	b := startChromium(t)
	s, at := serve(t, "", "chat")
	p := b.open(t, "http://"+at+"/live", 1440, "light")
	p.until(t, ready)
	p.eval(t, `document.querySelector('.card').open = false`, nil)
	l := newLoad(s.board, "later", false)
	p.until(t, `document.querySelectorAll('.card').length === 2 && document.querySelectorAll('#summary tbody tr').length === 2`)
	var open []bool
	p.eval(t, `[...document.querySelectorAll('.card')].map(c => c.open)`, &open)
	if !slices.Equal(open, []bool{false, true}) {
		t.Errorf("open: %v, want the first closed as it was, and the new one open", open)
	}
	s.board.Remove(l.w)
	p.until(t, `document.querySelectorAll('.card').length === 1 && !document.getElementById('summary').checkVisibility()`)
	p.quiet(t, at)
}

// TestKeyboard goes through the page with Tab only, and opens and closes with Enter and Space.
func TestKeyboard(t *testing.T) {
	b := startChromium(t)
	_, at := serve(t, "", "chat", "tools")
	p := b.open(t, "http://"+at+"/live", 390, "dark")
	p.until(t, ready)
	press := func(key string, code int, text string) {
		t.Helper()
		for _, kind := range []string{"keyDown", "keyUp"} {
			p.do(t, "Input.dispatchKeyEvent", object{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": map[bool]string{true: text}[kind == "keyDown"]}, nil)
		}
	}
	var focus struct {
		Text    string
		Outline string
		Seen    bool
	}
	tab := func() {
		t.Helper()
		press("Tab", 9, "")
		p.eval(t, `(() => { const e = document.activeElement, r = e.getBoundingClientRect()
			return { text: e.innerText.split('\n')[0], outline: getComputedStyle(e).outlineStyle, seen: r.top >= 0 && r.top < innerHeight } })()`, &focus)
	}
	var way []string
	for range 15 {
		tab()
		way = append(way, focus.Text)
		if focus.Outline != "solid" || !focus.Seen {
			t.Errorf("the focus on %q is not to be seen: %+v", focus.Text, focus)
		}
	}
	want := []string{
		"Skip to the workloads", "Metrics", "Config", "Runbook", "tools", "chat", "Open all", "Close all",
		"Metric\tRatio or excess\tInterval\tEvidence of worse", // the table scrolls
		"chat", "All outcomes and drops", "The last 10 minutes in figures",
		"tools", "All outcomes and drops", "The last 10 minutes in figures",
	}
	if !slices.Equal(way, want) {
		t.Errorf("by Tab: %q, want %q", way, want)
	}

	p.eval(t, `document.querySelector('.card summary').focus()`, nil)
	press("Enter", 13, "\r")
	p.until(t, `!document.querySelector('.card').open`)
	press(" ", 32, " ")
	p.until(t, `document.querySelector('.card').open`)
	p.eval(t, `document.getElementById('close-all').focus()`, nil)
	press("Enter", 13, "\r")
	p.until(t, `!document.querySelector('.card[open]')`)
	p.eval(t, `document.querySelector('#summary tbody a').focus()`, nil)
	press("Enter", 13, "\r") // opens the card of the worst workload and goes there
	p.until(t, `document.querySelector('.card[open] h2').innerText === 'tools' && document.activeElement === document.querySelector('.card[open] > summary')`)
	p.quiet(t, at)
}

// TestWords compares how the page formats figures and draws lines with tables.
func TestWords(t *testing.T) {
	b := startChromium(t)
	_, at := serve(t, "", "chat")
	p := b.open(t, "http://"+at+"/live", 390, "light")
	p.until(t, ready)
	f := func(call, want string) {
		t.Helper()
		var got string
		p.eval(t, `Promise.all(['words', 'draw'].map(n => import('/live/' + n + '.js'))).then(([words, draw]) => String(`+call+`))`, &got)
		if got != want {
			t.Errorf("%s: got %s, want %s", call, got, want)
		}
	}
	f("[null, 0, 0.004, 7.314, 9.996, 73.14, 731.4, 1234, 9999].map(words.short).join(' ')", "– 0 0.00 7.31 10.0 73.1 731 1,234 9,999")
	f("[10000, 73140, 999499, 999500, 7.3e6, 7.3e9].map(words.short).join(' ')", "10.0k 73.1k 999k 1.0M 7.3M 7.3G")
	f("[null, 4.2e-5, 0.00123, 0.0123, 0.999, 1, 9.99, 12.34, 61, 3725].map(words.latency).join(', ')", "–, 42 µs, 1.2 ms, 12 ms, 999 ms, 1.00 s, 9.99 s, 12.3 s, 61.0 s, 1 h 2 min")
	f("[1e-5, 0.001, 0.0005, 0.02, 0.5, 1, 20, 100].map(words.round).join(', ')", "10 µs, 1 ms, 500 µs, 20 ms, 500 ms, 1 s, 20 s, 1 min 40 s")
	f("[0, 59.9, 1421, 3600, 90061].map(words.clock).join(' ')", "0:00 0:59 23:41 1:00:00 25:01:01")
	f("[-1, 0, 59, 60, 2179, 3600, 90061, 8640000].map(words.long).join(', ')", "0 s, 0 s, 59 s, 1 min, 36 min 19 s, 1 h, 1 d 1 h, 100 d")
	f("[0, 0.0004, 0.012, 0.5, 0.994, 0.9995, 1].map(words.percent).join(', ')", "0 %, <0.1 %, 1.2 %, 50 %, 99.4 %, >99.9 %, 100 %")

	f("draw.line([5, null, 6, 7, 8])", "M0 5L1 5M2 6L3.5 7L4.5 8L5 8")
	f("draw.area([5, null, 6, 7], [9, 9, 9, 9])", "M0 5L1 5L1 9L0 9zM2 6L3.5 7L4 7L4 9L3.5 9L2 9z")
	f("draw.line([])", "")
	f("draw.scale([null, 0]) === null", "true")
	f("draw.scale([0.2, 0.9]).marks", "0.2,0.5,1,2")
	f("draw.scale([0.3, 0.3]).marks", "0.1,0.2,0.5,1")
	f("draw.scale([0.0001, 30]).marks.map(words.round).join(', ')", "100 µs, 1 ms, 10 ms, 100 ms, 1 s, 10 s")
	f("[0.1, 1, 5].map(draw.scale([0.1, 1]).y)", "100,0,0")
}

// TestMany: hundreds of workloads are lines; up to three workloads in trouble are open.
func TestMany(t *testing.T) {
	b := startChromium(t)
	names := make([]string, 200)
	for i := range names {
		names[i] = fmt.Sprintf("workload-%03d", i)
	}
	_, at := serve(t, "", names...)
	p := b.open(t, "http://"+at+"/live", 390, "light")
	p.until(t, `document.querySelectorAll('.card').length === 200 && document.querySelectorAll('#summary tbody tr').length === 200`)
	var open int
	p.eval(t, `document.querySelectorAll('.card[open]').length`, &open)
	if open > 3 {
		t.Errorf("%d cards are open, want at most 3", open)
	}
	p.fits(t, 390)
	p.quiet(t, at)
}

// TestWithoutJavaScript: the page has the figures of the time of the request.
func TestWithoutJavaScript(t *testing.T) {
	b := startChromium(t)
	_, at := serve(t, "", "chat", "tools")
	b.open(t, "http://"+at+"/live", 390, "light").until(t, ready) // by then there are some
	p := b.open(t, "http://"+at+"/live", 390, "light", func(p *tab) {
		p.do(t, "Emulation.setScriptExecutionDisabled", object{"value": true}, nil)
	})
	p.loaded(t)
	var text string
	p.eval(t, `document.body.innerText`, &text)
	for _, want := range []string{"Without JavaScript this page does not update by itself", "tools", "in flight (of 256 lanes)", "TTFT", "http_5xx"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	p.fits(t, 390)
}
