//go:build live

package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"replayd/test/outside"
)

// A chromium is a headless browser, driven by the DevTools protocol
// (https://chromedevtools.github.io/devtools-protocol/) over two pipes. JSON messages end with a zero byte.
type chromium struct {
	to io.Writer

	mu      sync.Mutex
	last    int
	answers map[int]chan answer
	tabs    map[string]*tab // by session
	gone    error           // why the browser no longer answers
}

type answer struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// startChromium starts the browser, and stops it with the test.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	program := outside.Install(t)
	ctx, stop := context.WithCancel(context.Background()) // the test's own context ends before its cleanup
	args := []string{
		"--headless", "--remote-debugging-pipe", "--user-data-dir=" + t.TempDir(), "--no-first-run", "--disable-gpu",
		"--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
	}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox") // Chromium refuses to run with a sandbox as root
	}
	c := exec.CommandContext(ctx, program, args...)
	theirs, ours, err := os.Pipe()
	back, theirBack, err2 := os.Pipe()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer                                                                      // read only after the end
	c.Stderr, c.ExtraFiles, c.WaitDelay = &said, []*os.File{theirs, theirBack}, 10*time.Second // descriptors 3 and 4
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirs.Close(), theirBack.Close()

	b := &chromium{to: ours, answers: map[int]chan answer{}, tabs: map[string]*tab{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(back)
	}()
	t.Cleanup(func() {
		stop()
		_ = c.Wait() // killed by the test, so its status is meaningless
		<-read
		_, _ = ours.Close(), back.Close()
		if t.Failed() {
			t.Logf("chromium said:\n%s", said.Bytes())
		}
	})
	return b
}

// read distributes the messages of the browser until it ends.
func (b *chromium) read(from io.Reader) {
	messages := bufio.NewReader(from)
	for {
		text, err := messages.ReadBytes(0)
		var m struct {
			ID        int
			SessionID string
			Method    string
			Params    json.RawMessage
			answer
		}
		if err == nil {
			err = json.Unmarshal(text[:len(text)-1], &m)
		}
		b.mu.Lock()
		if err != nil {
			b.gone = fmt.Errorf("chromium has ended: %w", err)
			for _, waiting := range b.answers {
				close(waiting)
			}
			b.mu.Unlock()
			return
		}
		if waiting := b.answers[m.ID]; waiting != nil {
			waiting <- m.answer // the channel has room
			delete(b.answers, m.ID)
		} else if p := b.tabs[m.SessionID]; p != nil {
			p.events = append(p.events, event{m.Method, m.Params})
		}
		b.mu.Unlock()
	}
}

// do sends a command to the browser, or to a page if a session is given, and waits for the answer.
func (b *chromium) do(t *testing.T, session, method string, params, result any) {
	t.Helper()
	b.mu.Lock()
	if b.gone != nil {
		b.mu.Unlock()
		t.Fatal(b.gone)
	}
	b.last++
	waiting := make(chan answer, 1)
	b.answers[b.last] = waiting
	text, err := json.Marshal(struct {
		ID        int    `json:"id"`
		SessionID string `json:"sessionId,omitempty"`
		Method    string `json:"method"`
		Params    any    `json:"params"`
	}{b.last, session, method, params})
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	var a answer
	var open bool
	select {
	case a, open = <-waiting:
	case <-time.After(time.Minute):
		t.Fatalf("%s: no answer within a minute", method)
	}
	if !open || a.Error != nil {
		t.Fatalf("%s: %+v", method, a.Error)
	}
	if result != nil {
		if err := json.Unmarshal(a.Result, result); err != nil {
			t.Fatalf("%s: %v in %s", method, err, a.Result)
		}
	}
}

// An object is an object of the protocol.
type object map[string]any

// A tab is one page of the browser with its events.
type tab struct {
	b       *chromium
	session string
	events  []event // guarded by the browser's lock
}

type event struct {
	method string
	params json.RawMessage
}

// open creates a page with a width and a preferred color scheme, and loads an address in it.
func (b *chromium) open(t *testing.T, address string, width int, scheme string, before ...func(p *tab)) *tab {
	t.Helper()
	var target struct{ TargetID string }
	b.do(t, "", "Target.createTarget", object{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.do(t, "", "Target.attachToTarget", object{"targetId": target.TargetID, "flatten": true}, &attached)
	p := &tab{b: b, session: attached.SessionID}
	b.mu.Lock()
	b.tabs[p.session] = p
	b.mu.Unlock()
	t.Cleanup(func() { b.do(t, "", "Target.closeTarget", object{"targetId": target.TargetID}, nil) })

	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.do(t, domain+".enable", object{}, nil)
	}
	p.do(t, "Emulation.setDeviceMetricsOverride", object{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	p.do(t, "Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	for _, f := range before {
		f(p)
	}
	p.do(t, "Page.navigate", object{"url": address}, nil)
	return p
}

func (p *tab) do(t *testing.T, method string, params, result any) {
	t.Helper()
	p.b.do(t, p.session, method, params, result)
}

// eval evaluates an expression in the page, awaits a promise, and decodes the value.
func (p *tab) eval(t *testing.T, expression string, into any) {
	t.Helper()
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	p.do(t, "Runtime.evaluate", object{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got)
	if got.ExceptionDetails != nil {
		t.Fatalf("%s: %s", expression, got.ExceptionDetails)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(got.Result.Value, into); err != nil {
		t.Fatalf("%s: %v in %s", expression, err, got.Result.Value)
	}
}

// until waits until a condition holds in the page, for at most 20 seconds.
func (p *tab) until(t *testing.T, condition string) {
	t.Helper()
	var held bool
	p.eval(t, fmt.Sprintf(`new Promise(done => {
		const end = Date.now() + 20000
		const look = () => { let held = false; try { held = !!(%s) } catch {} held || Date.now() > end ? done(held) : setTimeout(look, 50) }
		look()
	})`, condition), &held)
	if !held {
		var text string
		p.eval(t, "document.body.innerText", &text)
		t.Fatalf("not within 20 s: %s; the page shows:\n%s", condition, text)
	}
}

// told takes the events of the page with one name.
func (p *tab) told(method string) (params []json.RawMessage) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	for _, e := range p.events {
		if e.method == method {
			params = append(params, e.params)
		}
	}
	return params
}

// loaded waits for the page and its first resources. With scripts off, until has no timers.
func (p *tab) loaded(t *testing.T) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	late := time.After(20 * time.Second)
	for len(p.told("Page.loadEventFired")) == 0 {
		select {
		case <-look.C:
		case <-late:
			t.Fatal("not loaded within 20 s")
		}
	}
}
