package scrape

import "testing"

// A last line without a line end counts where the answer proves its end: telegraf had such engines (telegraf#10608), and Prometheus takes it.
func TestGetWithoutALastLineEnd(t *testing.T) {
	const body = "a 1\nb 2\nc 345"
	for _, c := range []struct {
		name, answer string
		whole        bool
	}{
		{"with a length", "Content-Length: 13\r\n\r\n" + body, true},
		{"in chunks", "Transfer-Encoding: chunked\r\n\r\nd\r\n" + body + "\r\n0\r\n\r\n", true},
		{"until the connection ends", "\r\n" + body, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := served(t, hijacked(t, "HTTP/1.1 200 OK\r\n"+c.answer))
			p, err := fetcher(t, nil).Get(t.Context(), s.URL, func(string) bool { return true })
			if (err == nil) != c.whole {
				t.Fatalf("got %v", err)
			}
			if c.whole && (len(p.Samples["c"]) != 1 || p.Samples["c"][0].Value != 345) {
				t.Errorf("got %v", p.Samples)
			}
		})
	}
}
