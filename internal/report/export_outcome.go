package report

import (
	"slices"
	"strings"

	"replayd/internal/measure"
)

// outcome is how the request of a line ended. A line of replayd's says so; of AIPerf's the error tells: its code is the HTTP
// status, its type the name of an exception.
func (l exportLine) outcome() (measure.Outcome, int, string) {
	status := l.Metadata.Status
	if l.Error == nil {
		if l.Metadata.WasCancelled {
			return measure.Cancelled, status, ""
		}
		return measure.OK, status, ""
	}
	text := l.Error.Message
	if slices.Contains(measure.Outcomes(), l.Metadata.Outcome) && l.Metadata.Outcome != measure.OK {
		return l.Metadata.Outcome, status, text
	}
	code := 0
	if l.Error.Code != nil {
		code = *l.Error.Code
	}
	if l.Error.Type != "" {
		text = l.Error.Type + ": " + text
	}
	kind := strings.ToLower(l.Error.Type)
	switch {
	case l.Metadata.WasCancelled || code == cancelledCode || strings.Contains(kind, "cancel"):
		return measure.Cancelled, status, text
	case code == 429:
		return measure.HTTP429, code, text
	case code >= 300 && code < 400:
		return measure.HTTP3xx, code, text
	case code >= 400 && code < 500:
		return measure.HTTP4xx, code, text
	case code >= 500 && code < 600:
		return measure.HTTP5xx, code, text
	case strings.Contains(kind, "timeout"):
		return measure.TimeoutTotal, status, text
	case strings.Contains(kind, "connect"):
		return measure.ConnectFailed, status, text
	}
	return measure.BadStream, status, text
}
