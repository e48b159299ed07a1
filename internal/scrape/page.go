// Package scrape reads the metrics pages of inference engines and exporters and maps each engine's metrics to one
// vocabulary.
package scrape

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"replayd/internal/secret"
)

// Bounds of a page. A page comes from another process and must not exhaust the memory or CPU of this one.
const (
	maxBodyBytes  = 16 << 20 // a page after decompression; vLLM's has about 100 KB, kube-state-metrics of a large cluster 10 MB
	maxSamples    = 200_000  // samples on a page, wanted or not
	maxKept       = 50_000   // wanted samples: 100 engines with 20 histograms of 25 buckets
	maxLabels     = 64       // labels of a sample
	maxValueBytes = 1 << 10  // a label name or value
	maxLineBytes  = 64 << 10 // a line
)

// processStart is the family that fills Page.Start.
const processStart = "process_start_time_seconds"

// A Page holds the wanted samples of one metrics page.
type Page struct {
	Samples map[string][]Sample // by sample name: a classic histogram is under name_bucket, name_sum and name_count
	Total   int                 // samples on the page, wanted or not
	Twice   int                 // wanted samples that were dropped because an earlier sample has the same name and labels
	Bad     int                 // dropped samples: they could not be read, or their values are impossible
	Start   time.Time           // process_start_time_seconds or a substitute; it identifies the process. Zero: the page has none

	stamp  stamp
	hidden secret.Set             // what no text of the page may show
	texts  map[string]secret.Text // label values that were let in

	damaged map[string]bool       // families of which something could not be read: Samples has nothing of them
	refused map[secret.Text]error // samples with impossible values, by the rows that are read
	first   error                 // why the first line, or sample, was dropped; nil: none was
}

// First says why the first line, or sample, was dropped; "": none was.
func (p *Page) First() secret.Text {
	if p.first == nil {
		return ""
	}
	return p.hidden.Text(p.first.Error(), maxError)
}

// isDamaged reports whether a sample of a name's family could not be read.
func (p *Page) isDamaged(name string) bool { return p.damaged[familyOf(name)] }

// refuse notes a sample whose value cannot be, once, though several rows may read it.
func (p *Page) refuse(name string, s Sample, want string) {
	if p.refused == nil {
		p.refused = map[secret.Text]error{}
	}
	line := p.hidden.Text(fmt.Sprintf("%s%v %g", name, s.Labels, s.Value), maxError)
	p.refused[line] = errorOf(ReasonParse, "want %s, got %q", want, clip(string(line), 200))
}

// drop counts refused samples.
func (p *Page) drop(refused map[secret.Text]error) {
	for _, line := range slices.Sorted(maps.Keys(refused)) {
		if p.Bad++; p.first == nil {
			p.first = refused[line]
		}
	}
}

// maxLabel bounds the text of a label value in bytes.
const maxLabel = 128

// Text lets a label value of the page in: one printable line of at most 128 bytes, without the credentials that the
// request for the page had.
func (p *Page) Text(value string) secret.Text {
	if text, known := p.texts[value]; known {
		return text
	}
	if p.texts == nil {
		p.texts = map[string]secret.Text{}
	}
	text := p.hidden.Text(value, maxLabel)
	p.texts[value] = text
	return text
}

// A Sample is one line of a page.
type Sample struct {
	Labels labels.Labels // without __name__
	Value  float64
}

// clip truncates text from outside to n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// A Reason says why a scrape returned no page, or only part of one.
type Reason string

// The reasons.
const (
	ReasonConnect     Reason = "connect"      // no connection, or it broke before the end of the page
	ReasonTimeout     Reason = "timeout"      // the context's deadline
	ReasonHTTP        Reason = "http"         // a status other than 200, or a redirect that is not followed
	ReasonContentType Reason = "content_type" // the body is no metrics page, or does not match its content type
	ReasonTooLarge    Reason = "too_large"    // over a limit on bytes, samples or labels
	ReasonParse       Reason = "parse"        // a syntax error on the page
	ReasonUnknown     Reason = "unknown"      // a whole page, but of an engine that the vocabulary does not have
	ReasonStale       Reason = "stale"        // a copy of an earlier page
)

// reasons lists all reasons in the order in which a scrape meets them.
var reasons = [...]Reason{ReasonConnect, ReasonTimeout, ReasonHTTP, ReasonContentType, ReasonTooLarge, ReasonParse, ReasonUnknown, ReasonStale}

// An Error is the failure of a scrape. It quotes and truncates text from outside.
type Error struct {
	Reason Reason
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

func errorOf(reason Reason, format string, args ...any) error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}
