package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Parse parses a page in Prometheus' text format 0.0.4 or OpenMetrics 1.0.0, depending on contentType; a blank or
// unknown type is parsed as 0.0.4. It keeps the samples whose name is wanted. Samples named _created are never kept.
//
// A line that cannot be read is counted, and the rest of the page is read. The page has nothing of
// its family, since part of a histogram or of a sum would be wrong, nor of the families beside a line without a known
// name. A page without samples is no error.
//
// Every error is an *Error. With ReasonParse the page ends too early, or hardly anything on it can be read: it holds
// the families that could be read. With any other reason the page is nil. The page does not keep body alive.
func Parse(body []byte, contentType string, wanted func(name string) bool) (*Page, error) {
	if len(body) > maxBodyBytes {
		return nil, errorOf(ReasonTooLarge, "want a page of at most %d bytes, got %d", maxBodyBytes, len(body))
	}
	r := &reader{page: &Page{Samples: map[string][]Sample{}}, wanted: wanted}
	openMetrics, isPage := formatOf(contentType)
	if !isPage || beginsLikeNoPage(body) {
		return nil, errorOf(ReasonContentType, "want a metrics page as text, got content type %q and %s",
			clip(contentType, 80), beginning(body))
	}
	err := r.text(body, openMetrics)
	r.dropDamaged()
	if e, ok := errors.AsType[*Error](err); ok && e.Reason != ReasonParse {
		return nil, err
	}
	if err != nil && r.page.Total == r.page.Bad && !isText(body) {
		return nil, errorOf(ReasonContentType, "want what content type %q says, got %s",
			clip(contentType, 80), beginning(body))
	}
	return r.page, err
}

// formatOf reports whether a page of a content type is in OpenMetrics, and whether it can be a metrics page as text. It uses the media type
// only: a malformed parameter, for instance a repeated charset, does not reject the page.
func formatOf(contentType string) (openMetrics, isPage bool) {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	other := func(suffix string) bool { return strings.HasSuffix(media, suffix) }
	isPage = !slices.ContainsFunc([]string{"json", "html", "xml", "protobuf", "text/event-stream"}, other)
	return media == "application/openmetrics-text", isPage
}

// beginsLikeNoPage reports whether body looks like JSON, HTML or XML. A sample may begin with a brace, {"a name with
// dots"}, but only if the client asks for such names.
func beginsLikeNoPage(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n\ufeff")
	return len(body) > 0 && strings.IndexByte("{[<", body[0]) >= 0
}

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
