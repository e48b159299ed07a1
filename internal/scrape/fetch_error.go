package scrape

import (
	"fmt"
	"slices"
)

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
)

// reasons lists all reasons in the order in which a scrape meets them.
var reasons = [...]Reason{ReasonConnect, ReasonTimeout, ReasonHTTP, ReasonContentType, ReasonTooLarge, ReasonParse, ReasonUnknown}

// place returns the index of r in reasons and in engine.failures.
func (r Reason) place() int { return slices.Index(reasons[:], r) }

// An Error is the failure of a scrape. It quotes and truncates text from outside.
type Error struct {
	Reason Reason
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

func fault(reason Reason, format string, args ...any) error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}
