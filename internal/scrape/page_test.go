package scrape

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	text004     = "text/plain; version=0.0.4; charset=utf-8"
	openMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	protobuf    = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

func anyName(string) bool { return true }

// written formats the samples of a page as sorted lines.
func written(p *Page) (lines []string) {
	if p == nil {
		return nil
	}
	for name, list := range p.Samples {
		for _, s := range list {
			lines = append(lines, fmt.Sprintf("%s%s %v", name, s.Labels, s.Value))
		}
	}
	slices.Sort(lines)
	return lines
}

// reasonOf returns the reason of an error, "" for nil.
func reasonOf(t *testing.T, err error) Reason {
	t.Helper()
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("want an *Error, got %T: %v", err, err)
	}
	return e.Reason
}

func TestParse(t *testing.T) {
	const histogram = "# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 4\nh_count 3\n"
	whole := []string{`h_bucket{le="+Inf"} 3`, `h_bucket{le="1.0"} 2`, `h_count{} 3`, `h_sum{} 4`}
	with := func(lines ...string) []string {
		lines = append(lines, whole...)
		slices.Sort(lines)
		return lines
	}
	for _, c := range []struct {
		name, contentType, body string
		want                    []string
		total                   int
		err                     string // "": none
	}{
		{"text", text004, histogram + "a 1\n", with("a{} 1"), 5, ""},
		{"an empty page", text004, "", nil, 0, ""},
		{"an empty OpenMetrics page", openMetrics, "# EOF\n", nil, 0, ""},
		{"only comments", text004, "# nothing here\n\n", nil, 0, ""},
		{"CRLF", text004, strings.ReplaceAll(histogram, "\n", "\r\n"), whole, 4, ""},
		{"CRLF in OpenMetrics", openMetrics, strings.ReplaceAll(histogram+"# EOF\n", "\n", "\r\n"), whole, 4, ""},
		{"blank lines", text004, "\n \n" + histogram + "\n\t\n  a 1  \n", with("a{} 1"), 5, ""},
		{"no content type", "", histogram, whole, 4, ""},
		{"an unknown content type", "application/x-what", histogram, whole, 4, ""},
		{"a broken content type", `text/plain; charset=utf-8; charset="`, histogram, whole, 4, ""},
		{"a broken OpenMetrics content type", "application/OpenMetrics-text; a=1; a=2", histogram + "# EOF\n", whole, 4, ""},
		{"EOF without a line end", openMetrics, histogram + "# EOF", whole, 4, ""},
		{"duplicates", text004, "a 1\na 2\n", []string{"a{} 1"}, 2, ""},
		{"duplicates in another order", text004, "a{x=\"1\",y=\"2\"} 1\na{x=\"2\",y=\"2\"} 5\na{y=\"2\",x=\"1\"} 2\n", []string{`a{x="1", y="2"} 1`, `a{x="2", y="2"} 5`}, 3, ""},
		{"a histogram twice", text004, histogram + histogram, whole, 8, ""},
		{"not a number", text004, "a NaN\nb +Inf\n", []string{"a{} NaN", "b{} +Inf"}, 2, ""},
		{"created", text004, "# TYPE h_created gauge\nh_created 1.7e9\n" + histogram, whole, 5, ""},
		{"created in OpenMetrics", openMetrics, "# TYPE a counter\na_total 1\na_created 1.7e9\n# EOF\n", []string{"a_total{} 1"}, 2, ""},
		{"an exemplar", openMetrics, "# TYPE a counter\na_total 1 # {id=\"x\"} 1 1.7e9\n# EOF\n", []string{"a_total{} 1"}, 1, ""},
		{"a time stamp", text004, "a 1 1700000000000\n", []string{"a{} 1"}, 1, ""},
		{"a quoted name", text004, "# TYPE a gauge\n{\"a.b\",c=\"d\"} 1\n", []string{`a.b{c="d"} 1`}, 1, ""},
		{"escapes", text004, `a{b="x\\y\"z\nw"} 1` + "\n", []string{`a{b="x\\y\"z\nw"} 1`}, 1, ""},

		{"a bad line", text004, histogram + "a 1\nb 2\nc{ 3\nd 4\n", with("a{} 1", "b{} 2", "d{} 4"), 8, `bad: line 8: expected label name, got "3" ("INVALID"), got "c{ 3"`},
		{"a bad line in CRLF", text004, "a 1\r\n\r\n# x\r\nb x\r\n", []string{"a{} 1"}, 2, `bad: line 4: strconv.ParseFloat: parsing "x": invalid syntax, got "b x"`},
		{"a bad line in a family", text004, "a 1\n" + histogram + "h_bucket{le=} 1\nb 1\n", []string{"a{} 1", "b{} 1"}, 7, `bad: line 7: expected label value, got "}" ("INVALID"), got "h_bucket{le=} 1"`},
		{"a bad line at the beginning of a family", text004, "a 1\nh_bucket{le=} 1\n" + histogram + "b 1\n", []string{"a{} 1", "b{} 1"}, 7, `bad: line 2: expected label value, got "}" ("INVALID"), got "h_bucket{le=} 1"`},
		{"a bad line of nobody", text004, "a 1\n" + histogram + "?!\nb 1\nc 1\n", []string{"a{} 1", "c{} 1"}, 8, `bad: line 7: expected a valid start token, got "?" ("INVALID"), got "?!"`},
		{"half a name", text004, "a 1\n" + histogram + "h_buck\nb 1\nc 1\n", []string{"a{} 1", "b{} 1", "c{} 1"}, 8, `bad: line 7: expected value after metric, got "\n" ("INVALID"), got "h_buck"`},
		{"a bad type", text004, "a 1\n# TYPE b foo\nb 1\nc 1\n", []string{"a{} 1", "c{} 1"}, 3, `bad: line 2: invalid metric type "foo", got "# TYPE b foo"`},
		{"many bad lines", text004, "a 1\nb x\nc 1\nd x\ne 1\n# EOF\n", []string{"a{} 1", "c{} 1", "e{} 1"}, 5, `bad: line 2: strconv.ParseFloat: parsing "x": invalid syntax, got "b x"`},
		{"bad lines of OpenMetrics", openMetrics, "a 1\nb x\nc 1\nd{e=\"} x\n# TYPE e gauge\ne 1\n# EOF\n", []string{"a{} 1", "c{} 1", "e{} 1"}, 5, `bad: line 2: strconv.ParseFloat: parsing "x": invalid syntax, got "b x"`},
		{"a long bad line", text004, "z 1\na{b=\"" + strings.Repeat("é", 100) + "\"} x\n", []string{"z{} 1"}, 2, `bad: line 2: strconv.ParseFloat: parsing "x": invalid syntax, got "a{b=\"` + strings.Repeat("é", 37) + `…"`},
		{"only bad lines", text004, "a x\nb y\n", nil, 2, `line 1: strconv.ParseFloat: parsing "x": invalid syntax, got "a x"`},
		{
			"open quotes of a name", text004, "a 1\n# HELP \"b it's\nb{c=\"d\"} 1\n# TYPE \"e\" gauge\ne 2\n",
			[]string{"a{} 1", `b{c="d"} 1`, "e{} 2"},
			3,
			`bad: line 2: want the quotes closed, got "# HELP \"b it's"`,
		},
		{"open quotes", text004, "a 1\nb{c=\"d} 1\ne 2\nf{g=\"\"} 1\n", []string{"a{} 1", "e{} 2", `f{g=""} 1`}, 4, `bad: line 2: want the quotes closed, got "b{c=\"d} 1"`},
		{"a byte 0", text004, "a 1\n\x00\nb 2\nc 3\n", []string{"c{} 3"}, 4, `bad: line 2: want text, not a byte 0, got "\x00"`},
		{"not UTF-8", text004, "a 1\nb{c=\"\xff\"} 1\n", []string{"a{} 1"}, 2, `bad: line 2: invalid UTF-8 label value: "\"\xff\"", got "b{c=\"\xff\"} 1"`},

		{"mid-line", text004, "a 1\nb 2\nc 345", []string{"a{} 1", "b{} 2"}, 2, `line 3: the page ends in mid-line, want a line end, got "c 345"`},
		{"mid-line in a family", text004, "a 1\n" + histogram + "h_bucket{x=\"1\",le=\"1\"} 1", []string{"a{} 1"}, 5, `line 7: the page ends in mid-line, want a line end, got "h_bucket{x=\"1\",le=\"1\"} 1"`},
		{"mid-name", text004, "a 1\n" + histogram + "h_bu", []string{"a{} 1"}, 5, `line 7: the page ends in mid-line, want a line end, got "h_bu"`},
		{"mid-line in OpenMetrics", openMetrics, "a 1\nb 2\nc 3", []string{"a{} 1", "b{} 2"}, 2, `line 3: the page ends in mid-line, want a line end, got "c 3"`},
		{"a lone mid-line", text004, "a 1", nil, 0, `line 1: the page ends in mid-line, want a line end, got "a 1"`},
		{"no EOF", openMetrics, "a 1\n" + histogram, []string{"a{} 1"}, 5, `line 6: data does not end with # EOF, got "h_count 3"`},
		{"mid-line after EOF", openMetrics, "a 1\n# EOF\nb", []string{"a{} 1"}, 1, `line 3: the page ends in mid-line, want a line end, got "b"`},
		{"more after EOF", openMetrics, "a 1\n# EOF\nb 2\n", []string{"a{} 1"}, 2, `line 3: data does not end with # EOF, got "b 2"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse([]byte(c.body), c.contentType, anyName)
			if p == nil {
				t.Fatal("no page")
			}
			if bad, ok := strings.CutPrefix(c.err, "bad: "); ok {
				if err != nil || string(p.First()) != bad || p.Bad == 0 && !strings.Contains(bad, "# ") {
					t.Errorf("want the bad sample %q, got %d with %q, and %v", bad, p.Bad, p.First(), err)
				}
			} else if (err != nil || c.err != "") && (err == nil || err.Error() != c.err || reasonOf(t, err) != ReasonParse) {
				t.Errorf("error: want %q, got %q", c.err, fmt.Sprint(err))
			}
			if diff := cmp.Diff(c.want, written(p)); diff != "" {
				t.Errorf("samples, - want, + got:\n%s", diff)
			}
			if p.Total != c.total {
				t.Errorf("want %d samples, got %d", c.total, p.Total)
			}
		})
	}
}

func TestParseKeepsWhatIsWanted(t *testing.T) {
	body := "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 3\nh_sum 4\nh_count 3\nprocess_start_time_seconds 1.7e+09\na 1\n"
	p, err := Parse([]byte(body), text004, func(name string) bool { return name == "h_sum" })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"h_sum{} 4"}, written(p)); diff != "" {
		t.Error(diff)
	}
	if want := time.Unix(1_700_000_000, 0); !p.Start.Equal(want) || p.Total != 5 {
		t.Errorf("want 5 samples and a start at %v, got %d and %v", want, p.Total, p.Start)
	}
}

func TestParseStart(t *testing.T) {
	for _, c := range []struct {
		value string
		want  float64 // seconds since 1970; 0: none
	}{
		{"1.7000000005e+09", 1_700_000_000.5},
		{"0", 0},
		{"-1", 0},
		{"NaN", 0},
		{"+Inf", 0},
		{"1.7e+12", 0},
		{"946684800", 946_684_800},
		{"1.7e+09\nprocess_start_time_seconds{pid=\"2\"} 1.8e+09\nprocess_start_time_seconds 1.6e+09", 1_800_000_000},
	} {
		p, err := Parse([]byte("process_start_time_seconds "+c.value+"\n"), text004, func(string) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		got := 0.0
		if !p.Start.IsZero() {
			got = float64(p.Start.UnixNano()) / 1e9
		}
		if math.Abs(got-c.want) > 1e-6 || len(p.Samples) != 0 {
			t.Errorf("%s: want %v and nothing kept, got %v and %v", c.value, c.want, got, p.Samples)
		}
	}
	p, err := Parse([]byte("process_start_time_seconds 1.7e+09\nprocess_start_time_seconds x\n"), text004, anyName)
	if err != nil || p.Bad != 1 || !p.Start.IsZero() {
		t.Errorf("want no start of a family with a bad line, got %d bad ones, %v and %v", p.Bad, err, p.Start)
	}
}

// TestParseEveryCut truncates a page at every byte: each family is kept whole or not at all.
func TestParseEveryCut(t *testing.T) {
	body := "a{x=\"1\"} 11\na{x=\"2\"} 22\n# HELP h of it\n# TYPE h histogram\nh_bucket{le=\"1\"} 10\nh_bucket{le=\"+Inf\"} 12\nh_sum 1.5\nh_count 12\n# HELP b of it\nb_total 33\n"
	families := map[string]int{"a": 2, "h": 4, "b": 1}
	for _, contentType := range []string{text004, openMetrics} {
		for n := range len(body) {
			p, err := Parse([]byte(body[:n]), contentType, anyName)
			got := map[string]int{}
			for name, list := range p.Samples {
				got[familyOf(name)] += len(list)
				for _, s := range list {
					if !strings.Contains(body, fmt.Sprintf(" %v\n", s.Value)) {
						t.Errorf("cut at %d: %s is %v, which is not on the page", n, name, s.Value)
					}
				}
			}
			if n > 0 && body[n-1] != '\n' && err == nil {
				t.Errorf("cut at %d: want an error", n)
			}
			if err == nil {
				continue // cut at a line end: the old text format cannot detect this
			}
			for family, count := range got {
				if count != families[family] {
					t.Errorf("%s cut at %d: want all %d samples of %s or none, got %d", contentType, n, families[family], family, count)
				}
			}
		}
	}
}

func TestParseRefusesOtherThings(t *testing.T) {
	page := "# TYPE a gauge\na 1\n"
	frame := "\x0b\n\x01a\x18\x01\"\x04\x12\x02\x09\x00" // truncated inside the metric
	for _, c := range []struct {
		name, contentType, body string
		reason                  Reason
		err                     string // substring of the error
	}{
		{"JSON", "application/json", `{"error": "no"}`, ReasonContentType, `"application/json" and a body that begins "{\"error\": \"no\"}"`},
		{"JSON with a page", "application/json; charset=utf-8", page, ReasonContentType, `"application/json; charset=utf-8" and a body that begins "# TYPE a`},
		{"nothing as JSON", "application/json", "", ReasonContentType, "an empty body"},
		{"JSON as text", text004, "\n [1, 2]", ReasonContentType, `a body that begins "\n [1, 2]"`},
		{"JSON of nothing known", "", `{"a": 1}`, ReasonContentType, `content type ""`},
		{"JSON as OpenMetrics", openMetrics, `{}`, ReasonContentType, `a body that begins "{}"`},
		{"JSON as protobuf", protobuf, `{"error": "a long text that is no protobuf"}`, ReasonContentType, `and a body that begins "{\"error\"`},
		{"HTML", "text/html", "<html>" + strings.Repeat("x", 200), ReasonContentType, `"<html>` + strings.Repeat("x", 74) + `…"`},
		{"HTML as text", "text/plain", "<!doctype html>", ReasonContentType, `"<!doctype html>"`},
		{"prose as text", "text/plain", "Not here.\n", ReasonParse, `line 1: `},
		{"text as protobuf", protobuf, page, ReasonContentType, `as text, got content type "application/vnd.google.protobuf; `},
		{"nothing as protobuf", protobuf, "", ReasonContentType, `and an empty body`},
		{"protobuf as text", text004, frame + "\n", ReasonContentType, `text/plain`},
		{"protobuf without a line end as text", text004, frame, ReasonContentType, `text/plain`},
		{"protobuf as OpenMetrics", openMetrics, frame + "\n", ReasonContentType, `openmetrics`},
		{"17 MB", text004, strings.Repeat("a 1\n", 5<<20), ReasonTooLarge, "at most 16777216 bytes, got 20971520"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse([]byte(c.body), c.contentType, anyName)
			if reasonOf(t, err) != c.reason || !strings.Contains(err.Error(), c.err) {
				t.Errorf("want %s: …%s…, got %s: %v", c.reason, c.err, reasonOf(t, err), err)
			}
			if p != nil && (len(p.Samples) > 0 || c.reason != ReasonParse) {
				t.Errorf("want no page, got %v", written(p))
			}
			if len(err.Error()) > 600 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}
