// Package scrape reads the metrics pages of inference engines and of exporters, and says what each engine's figures are
// called in one vocabulary.
package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
)

// Bounds of a page. A page comes from another process, and none may cost this one its memory or its processor.
const (
	maxBodyBytes     = 16 << 20 // a page after decompression; vLLM's has about 100 KB, a kube-state-metrics of a large cluster 10 MB
	maxSamples       = 200_000  // samples on a page, wanted or not
	maxKept          = 50_000   // wanted samples: 100 engines of 20 histograms of 25 buckets
	maxLabels        = 64       // labels of a sample
	maxValueBytes    = 1 << 10  // a label value
	maxLineBytes     = 64 << 10 // a line of text, or a metric in protobuf, which has all buckets of a histogram
	maxNativeBuckets = 1_024    // of a native histogram; client_golang's users ask for 160 at most
	// In protobuf the labels stand once for all buckets of a histogram: 16 MiB could become gigabytes of labels.
	maxLabelBytes = 64 << 20
)

// processStart is the family that fills Page.Start.
const processStart = "process_start_time_seconds"

// A Page is what was wanted of one metrics page.
type Page struct {
	Samples map[string][]Sample // by the name on the sample's line: histograms as name_bucket, name_sum and name_count
	Total   int                 // samples on the page, wanted or not
	Skipped int                 // wanted samples left out for a fault of their own: too many or too long labels, one label twice, a native histogram that cannot be
	Twice   int                 // wanted samples left out because the page has a sample of the same name and labels before them
	Start   time.Time           // process_start_time_seconds, or what stands for it: it tells processes apart; zero: the page has none
}

// A Sample is one line of a page, or one native histogram.
type Sample struct {
	Labels labels.Labels // without __name__
	Value  float64
	Native *histogram.FloatHistogram // nil: it is none; then Samples has it by the family's name
}

// Parse reads a page in Prometheus' text format 0.0.4, in OpenMetrics 1.0.0 or in delimited protobuf, whichever the content
// type says; a blank or unknown type is read as text. It keeps the samples whose name is wanted: for a native histogram that
// is the family's name. A histogram that is classic and native is kept as both. Samples named _created are never kept.
//
// An error is always an *Error. The readers stop at the first fault; with ReasonParse the page holds what came before it,
// without the family in which it was found, since half of a histogram or a sum over half of the rows would be a lie. With any
// other reason the page is nil. A page without a sample is no error. What is kept has no hold on body.
func Parse(body []byte, contentType string, wanted func(name string) bool) (*Page, error) {
	if len(body) > maxBodyBytes {
		return nil, fault(ReasonTooLarge, "want a page of at most %d bytes, got %d", maxBodyBytes, len(body))
	}
	r := &reader{page: &Page{Samples: map[string][]Sample{}}, wanted: wanted}
	var err error
	switch f := formatOf(contentType); {
	case f == formatNone, f != formatProtobuf && beginsLikeNoPage(body):
		return nil, fault(ReasonContentType, "want a metrics page, got content type %q and %s", clip(contentType, 80), beginning(body))
	case f == formatProtobuf:
		err = r.protobuf(body)
	default:
		err = r.text(body, f == formatOpenMetrics)
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Reason != ReasonParse {
		return nil, err
	}
	if err != nil && r.page.Total == 0 && isText(body) == (formatOf(contentType) == formatProtobuf) {
		return nil, fault(ReasonContentType, "want what content type %q says, got %s", clip(contentType, 80), beginning(body))
	}
	return r.page, err
}

type format int

const (
	formatText format = iota
	formatOpenMetrics
	formatProtobuf
	formatNone // something that is no metrics page
)

// formatOf goes by the media type alone: a parameter that cannot be read, such as a charset given twice, is no reason to
// refuse a page.
func formatOf(contentType string) format {
	media, _, _ := strings.Cut(contentType, ";")
	switch media = strings.ToLower(strings.TrimSpace(media)); {
	case media == "application/openmetrics-text":
		return formatOpenMetrics
	case media == "application/vnd.google.protobuf":
		return formatProtobuf
	case strings.HasSuffix(media, "json"), strings.HasSuffix(media, "html"), strings.HasSuffix(media, "xml"), media == "text/event-stream":
		return formatNone
	}
	return formatText
}

// beginsLikeNoPage reports JSON, HTML or XML. A sample could begin with a brace too, {"a name with dots"}, but only for a
// client that asks for such names.
func beginsLikeNoPage(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n\ufeff")
	return len(body) > 0 && strings.IndexByte("{[<", body[0]) >= 0
}

// isText says whether a body begins as text does: each metric in protobuf has control characters.
func isText(body []byte) bool {
	for i, r := range string(body[:min(len(body), 256)]) {
		if r < ' ' && r != '\t' && r != '\r' && r != '\n' || r == utf8.RuneError && i < 253 { // past that it may be a letter cut in two
			return false
		}
	}
	return true
}

// beginning is how a body is shown in an error.
func beginning(body []byte) string {
	if len(body) == 0 {
		return "an empty body"
	}
	return fmt.Sprintf("a body that begins %q", clip(string(body[:min(len(body), 200)]), 80))
}

// clip shortens text from outside to n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
