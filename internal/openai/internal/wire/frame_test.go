package wire

import (
	"io"
	"net/http/httputil"
	"strings"
	"testing"
)

// framed decodes text in pieces of n bytes.
func framed(f *frame, text string, n int) (body, left string, err error) {
	var out strings.Builder
	for len(text) > 0 && !f.ended {
		p := []byte(text[:min(n, len(text))])
		text = text[len(p):]
		for len(p) > 0 && !f.ended {
			data, rest, err := f.next(p)
			out.Write(data)
			if err != nil {
				return out.String(), text, err
			}
			p = rest
		}
		text = string(p) + text
	}
	return out.String(), text, nil
}

func TestFrame(t *testing.T) {
	const chunked, unknown = -1, -2
	for name, c := range map[string]struct {
		length, status    int
		in, body, left    string
		ended, wantBroken bool
	}{
		"length":            {length: 5, status: 200, in: "helloHTTP", body: "hello", left: "HTTP", ended: true},
		"length cut":        {length: 5, status: 200, in: "hel", body: "hel"},
		"no body":           {length: 0, status: 200, in: "x", left: "x", ended: true},
		"204":               {length: unknown, status: 204, in: "x", left: "x", ended: true},
		"to the end":        {length: unknown, status: 200, in: "hello", body: "hello"},
		"chunks":            {length: chunked, status: 200, in: "5\r\nhello\r\nA\r\n 012345678\r\n0\r\n\r\nHTTP", body: "hello 012345678", left: "HTTP", ended: true},
		"extension":         {length: chunked, status: 200, in: "5;a=\"b\"\r\nhello\r\n00 \r\n\r\n", body: "hello", ended: true},
		"trailer":           {length: chunked, status: 200, in: "1\r\na\r\n0\r\nX: y\r\nZ: w\r\n\r\n", body: "a", ended: true},
		"cut":               {length: chunked, status: 200, in: "5\r\nhel", body: "hel"},
		"no size":           {length: chunked, status: 200, in: "\r\nhello", wantBroken: true},
		"no hex":            {length: chunked, status: 200, in: "5x\r\nhello", wantBroken: true},
		"behind a blank":    {length: chunked, status: 200, in: "5 x\r\nhello", wantBroken: true},
		"too many digits":   {length: chunked, status: 200, in: "00000000000000005\r\nhello", wantBroken: true},
		"sign":              {length: chunked, status: 200, in: "-5\r\nhello", wantBroken: true},
		"bare LF":           {length: chunked, status: 200, in: "5\nhello", wantBroken: true},
		"LF in extension":   {length: chunked, status: 200, in: "5;a\nhello", wantBroken: true},
		"CR alone":          {length: chunked, status: 200, in: "5\rhello", wantBroken: true},
		"chunk too long":    {length: chunked, status: 200, in: "1\r\nab\r\n", body: "a", wantBroken: true},
		"no LF behind":      {length: chunked, status: 200, in: "1\r\na\rb", body: "a", wantBroken: true},
		"too large":         {length: chunked, status: 200, in: "fffffffffffff\r\n", wantBroken: true},
		"long extension":    {length: chunked, status: 200, in: "5;" + strings.Repeat("x", maxAround), wantBroken: true},
		"long trailers":     {length: chunked, status: 200, in: "0\r\n" + strings.Repeat("X: y\r\n", maxAround/6+1), wantBroken: true},
		"trailer's last CR": {length: chunked, status: 200, in: "0\r\n\rx", wantBroken: true},
	} {
		for _, n := range []int{1, 2, 3, 1 << 20} {
			var f frame
			f.reset(c.length, c.status)
			body, left, err := framed(&f, c.in, n)
			if (err != nil) != c.wantBroken || body != c.body || f.ended != c.ended || !c.wantBroken && left != c.left {
				t.Errorf("%s by %d: body %q left %q ended %v error %v", name, n, body, left, f.ended, err)
			}
		}
	}
}

// FuzzFrame checks that a body that is accepted in pieces is decoded as the standard library decodes the whole
// text.
func FuzzFrame(f *testing.F) {
	f.Add("5\r\nhello\r\n0\r\n\r\n", uint8(2))
	f.Add("5;x\r\nhello\r\n0\r\nA: b\r\n\r\n", uint8(1))
	f.Add("0 \x00\r\n\r\n", uint8(0)) // a size followed by other bytes
	f.Fuzz(func(t *testing.T, text string, n uint8) {
		var fr frame
		fr.reset(-1, 200)
		body, _, err := framed(&fr, text, max(int(n), 1))
		if err != nil || !fr.ended {
			return
		}
		want, err := io.ReadAll(httputil.NewChunkedReader(strings.NewReader(text)))
		if err != nil || string(want) != body {
			t.Errorf("%q: got %q, net/http %q and %v", text, body, want, err)
		}
	})
}
