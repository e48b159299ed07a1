package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scanned returns the Events of pieces, one read for each piece, as "read: data".
func scanned(pieces ...string) []string {
	var s Scanner
	var out []string
	note := func(e Event) {
		text := fmt.Sprintf("%d: %s", e.Arrival.Read, e.Data)
		if e.Failed {
			text += " failed " + string(e.Note)
		}
		if e.Named && !e.Failed {
			text += " named"
		}
		out = append(out, text)
	}
	var a Arrival
	for i, piece := range pieces {
		a.Read = uint64(i)
		buffer := []byte(piece)
		for p := buffer; ; {
			e, rest, ok, err := s.Next(p, a)
			if err != nil {
				return append(out, err.Error())
			}
			if !ok {
				break
			}
			note(e)
			p = rest
		}
		for i := range buffer { // the lane reuses its buffer
			buffer[i] = '#'
		}
	}
	if e, ok := s.Rest(a); ok {
		note(e)
	}
	return out
}

func TestScanner(t *testing.T) {
	for name, c := range map[string]struct {
		pieces []string
		want   []string
	}{
		"LF":                       {[]string{"data: a\n\ndata: b\n\n"}, []string{"0: a", "0: b"}},
		"CRLF":                     {[]string{"data: a\r\n\r\ndata: b\r\n\r\n"}, []string{"0: a", "0: b"}},
		"CR":                       {[]string{"data: a\r\rdata: b\r: c\r\r"}, []string{"0: a", "0: b"}},
		"all three":                {[]string{"data: a\r\n\ndata: b\n\rdata: c\r\r\n"}, []string{"0: a", "0: b", "0: c"}},
		"CRLF cut in the middle":   {[]string{"data: a\r", "\ndata: b\r", "\n", "\r", "\ndata: c\n\r"}, []string{"1: a\nb", "4: c"}},
		"a CR at the end of reads": {[]string{"data: a\r", "\r", "data: b\r\r"}, []string{"0: a", "2: b"}},
		"BOM":                      {[]string{"\ufeffdata: a\n\ndata: b\n\n"}, []string{"0: a", "0: b"}},
		"BOM in pieces":            {[]string{"\xef", "\xbb", "\xbfda", "ta: a\n\n"}, []string{"3: a"}},
		"BOM before a blank line":  {[]string{"\ufeff\ndata: a\n\n"}, []string{"0: a"}},
		"BOM and no line end":      {[]string{"\ufeffdata: a"}, []string{"0: a"}},
		"two BOMs":                 {[]string{"\ufeff\ufeffdata: a\n\n\ufeffdata: b\n\n"}, nil},
		"no space, trailing space": {[]string{"data:a \n\ndata:  b\t\n\n"}, []string{"0: a", "0: b"}},
		"comments":                 {[]string{":\n\n: ping\n\ndata: a\n: in between\n\n:\n"}, []string{"0: a"}},
		"joined lines":             {[]string{"data: a\ndata: b\ndata\ndata: c\n\n"}, []string{"0: a\nb\n\nc"}},
		"joined over reads":        {[]string{"data: a\nda", "ta: b\n", "\n"}, []string{"1: a\nb"}},
		"empty events":             {[]string{"\n\n\ndata:\n\ndata\n\nid: 7\nretry: 5\n\ndata: a\n\n"}, []string{"0: a"}},
		"empty after carried":      {[]string{"data: a", "\n\ndata\n\ndata: b\n\n"}, []string{"1: a", "1: b"}},
		"error with data":          {[]string{"event: error\ndata: {}\n\n"}, []string{"0: {} failed "}},
		"error without data":       {[]string{"event: error\n: gone\n\ndata: a\n\n"}, []string{"0:  failed gone", "0: a"}},
		"a field error": {
			[]string{"error: a\n\ndata: b\nerror\nevent: message\n\n"},
			[]string{"0: a failed ", "0: b failed "},
		},
		"comment before the error": {[]string{": gone\nevent:error\n\n"}, []string{"0:  failed gone"}},
		"named":                    {[]string{"event: note\ndata: a\n\nevent: message\ndata: b\n\n"}, []string{"0: a named", "0: b"}},
		"name without data":        {[]string{"event: note\n\ndata: a\n\n"}, []string{"0: a"}},
		"other fields":             {[]string{"database: x\neventual: error\nfoo\ndata: a\n\n"}, []string{"0: a"}},
		"blank line in a later read": {
			[]string{"data: a\n", "\ndata: b", "\n", "\n"},
			[]string{"0: a", "2: b"},
		},
		"no blank line at the end": {[]string{"data: a\n\ndata: b\n"}, []string{"0: a", "0: b"}},
		"no line end at the end":   {[]string{"data: a\n\n", "data: [DONE]"}, []string{"0: a", "1: [DONE]"}},
		"only a CR at the end":     {[]string{"data: a\r\n\r"}, []string{"0: a"}},
		"a comment over its bound": {
			[]string{":" + strings.Repeat("x", 1000) + "\nevent: error\n\n"},
			[]string{"0:  failed " + strings.Repeat("x", 128)},
		},
		"a line over its bound": {[]string{"data: " + strings.Repeat("x", maxEvent)}, []string{ErrEvent.Error()}},
		"many lines over the bound": {
			[]string{strings.Repeat("data: "+strings.Repeat("x", 2<<20)+"\n", 5)},
			[]string{ErrEvent.Error()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, scanned(c.pieces...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Reset releases a buffer that grew for one large Event.
func TestScannerLetsGo(t *testing.T) {
	var s Scanner
	_, _, _, _ = s.Next(make([]byte, 1<<20), Arrival{})
	s.Reset()
	if n := cap(s.line); n != 0 {
		t.Errorf("kept %d bytes, want none", n)
	}
}

// naive is a simple scanner: it splits the whole text into lines, and the lines into Events.
func naive(text string) []string {
	var out []string
	var data []string
	var note string
	var failed, named bool
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(text, "\ufeff"))
	for line := range strings.SplitSeq(text+"\n\n", "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch {
		case line == "":
			joined := string(bytes.TrimSpace([]byte(strings.Join(data, "\n"))))
			if joined != "" || failed {
				text := "0: " + joined
				if failed {
					text += " failed " + note
				} else if named {
					text += " named"
				}
				out = append(out, text)
			}
			data, note, failed, named = nil, "", false, false
		case name == "":
			note = string(bytes.TrimSpace([]byte(value)))
			note = note[:min(len(note), 128)]
		case name == "data" || name == "error":
			failed = failed || name == "error"
			data = append(data, strings.TrimPrefix(value, " "))
		case name == "event":
			n := string(bytes.TrimSpace([]byte(value)))
			failed, named = failed || n == "error", n != "" && n != "message"
		}
	}
	return out
}

// FuzzScanner checks that the Events are those of naive, wherever a stream is cut into reads.
func FuzzScanner(f *testing.F) {
	f.Add("data: a\r\n\r\n: x\nevent: error\n\ndata:b\ndata: c\n\n", uint8(3), uint8(9))
	f.Add("data: a\nerror: b\nevent: c\n\nerrors: d\n\n", uint8(9), uint8(9))
	f.Add("data\n\n\ndata: [DONE]", uint8(1), uint8(2))
	f.Add("\ufeffdata: a\r\rdata: b\r\n\r\ndata: c\n\r", uint8(2), uint8(7))
	f.Fuzz(func(t *testing.T, text string, a, b uint8) {
		i := min(int(a), len(text))
		j := min(i+int(b), len(text))
		want := naive(text)
		got := scanned(text[:i], text[i:j], text[j:])
		for k := range got { // the number of the read depends on the cut
			_, rest, _ := strings.Cut(got[k], ":")
			got[k] = "0:" + rest
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q | %q | %q (-want +got):\n%s", text[:i], text[i:j], text[j:], diff)
		}
	})
}
