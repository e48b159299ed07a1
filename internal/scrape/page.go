// Package scrape reads the metrics pages of inference engines and exporters and maps each engine's metrics to one
// vocabulary.
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

// Bounds of a page. A page comes from another process and must not exhaust the memory or CPU of this one.
const (
	maxBodyBytes     = 16 << 20 // a page after decompression; vLLM's has about 100 KB, kube-state-metrics of a large cluster 10 MB
	maxSamples       = 200_000  // samples on a page, wanted or not
	maxKept          = 50_000   // wanted samples: 100 engines with 20 histograms of 25 buckets
	maxLabels        = 64       // labels of a sample
	maxValueBytes    = 1 << 10  // a label name or value
	maxLineBytes     = 64 << 10 // a line of text, or a protobuf metric with all buckets of its histogram
	maxNativeBuckets = 1_024    // buckets of a native histogram; users of client_golang configure at most 160
	// A protobuf histogram has its labels once for all buckets: 16 MiB could expand to gigabytes of labels.
	maxLabelBytes = 64 << 20
)

// processStart is the family that fills Page.Start.
const processStart = "process_start_time_seconds"

// A Page holds the wanted samples of one metrics page.
type Page struct {
	Samples map[string][]Sample // by sample name: a classic histogram is under name_bucket, name_sum and name_count
	Total   int                 // samples on the page, wanted or not
	Skipped int                 // wanted samples that were dropped: too many, too long or duplicate labels, or an invalid native histogram
	Twice   int                 // wanted samples that were dropped because an earlier sample has the same name and labels
	Start   time.Time           // process_start_time_seconds or a substitute; it identifies the process. Zero: the page has none
}

// A Sample is one line of a page, or one native histogram.
type Sample struct {
	Labels labels.Labels // without __name__
	Value  float64
	Native *histogram.FloatHistogram // nil: not native. Samples has it under its family's name
}

// Parse parses a page in Prometheus' text format 0.0.4, OpenMetrics 1.0.0 or delimited protobuf, depending on
// contentType; a blank or unknown type is parsed as text. It keeps the samples whose name is wanted; for a native
// histogram this is the family's name. A histogram that is classic and native is kept as both. Samples named _created
// are never kept.
//
// Every error is an *Error, and parsing stops at the first. With ReasonParse the page holds the families before the
// error, but not the family with the error, since part of a histogram or of a sum would be wrong. With any other reason
// the page is nil. A page without samples is no error. The page does not keep body alive.
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
	formatNone // not a metrics page
)

// formatOf uses the media type only. A malformed parameter, for instance a repeated charset, does not reject the page.
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

// beginsLikeNoPage reports whether body looks like JSON, HTML or XML. A sample may begin with a brace, {"a name with
// dots"}, but only if the client asks for such names.
func beginsLikeNoPage(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n\ufeff")
	return len(body) > 0 && strings.IndexByte("{[<", body[0]) >= 0
}

// isText reports whether body begins like text. Every metric in protobuf contains control characters.
func isText(body []byte) bool {
	for i, r := range string(body[:min(len(body), 256)]) {
		if r < ' ' && r != '\t' && r != '\r' && r != '\n' || r == utf8.RuneError && i < 253 { // the cut may split the last rune
			return false
		}
	}
	return true
}

// beginning quotes the beginning of a body for an error.
func beginning(body []byte) string {
	if len(body) == 0 {
		return "an empty body"
	}
	return fmt.Sprintf("a body that begins %q", clip(string(body[:min(len(body), 200)]), 80))
}

// clip truncates text from outside to n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
