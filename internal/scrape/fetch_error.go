package scrape

import (
	"fmt"
	"slices"
)

// A Reason is why a page could not be had, or not all of it.
type Reason string

// The reasons.
const (
	ReasonConnect     Reason = "connect"      // no connection, or one that broke before the page's end
	ReasonTimeout     Reason = "timeout"      // the context's deadline
	ReasonHTTP        Reason = "http"         // an answer other than 200, a redirect that is not followed among them
	ReasonContentType Reason = "content_type" // what came is no metrics page, or not what its content type says
	ReasonTooLarge    Reason = "too_large"    // past a bound: bytes, samples or labels
	ReasonParse       Reason = "parse"        // a fault on the page
	ReasonUnknown     Reason = "unknown"      // a whole page, and of no engine that the vocabulary has
)

// reasons are all of them, in the order in which a scrape meets them.
var reasons = [...]Reason{ReasonConnect, ReasonTimeout, ReasonHTTP, ReasonContentType, ReasonTooLarge, ReasonParse, ReasonUnknown}

// place is where a reason is counted.
func (r Reason) place() int { return slices.Index(reasons[:], r) }

// An Error is what went wrong with a page. Text from outside is cut and quoted in it.
type Error struct {
	Reason Reason
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

func fault(reason Reason, format string, args ...any) error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}
