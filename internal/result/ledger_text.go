package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"replayd/internal/measure"
	"replayd/internal/number"
)

// UnknownLedger is the text for files without a ledger: AIPerf's files, and old ones.
const UnknownLedger = "what was never sent is not in these files"

// DroppedText says how many expected requests were never sent and why: "30 dropped (overload)".
func DroppedText(l measure.Ledger) string {
	return fmt.Sprintf("%s dropped (%s)", number.Whole(l.Unsent()), WhyDropped(l))
}

// NeverSentText is DroppedText as a sentence: "30 of 40 expected requests were never sent (overload)".
func NeverSentText(l measure.Ledger) string {
	were := "were"
	if l.Unsent() == 1 {
		were = "was"
	}
	return fmt.Sprintf("%s of %s %s never sent (%s)", number.Whole(l.Unsent()), number.Count(int(l.Expected), "expected request"), were, WhyDropped(l))
}

// WhyDropped lists the drop reasons, the most frequent first, with counts if there are several: "overload", "20
// overload, 10 guard".
func WhyDropped(l measure.Ledger) string {
	reasons := slices.DeleteFunc(measure.DropReasons(), func(why measure.DropReason) bool {
		return l.Dropped[why] <= 0
	})
	slices.SortStableFunc(reasons, func(a, b measure.DropReason) int { return cmp.Compare(l.Dropped[b], l.Dropped[a]) })
	var texts []string
	for _, why := range reasons {
		text := string(why)
		if len(reasons) > 1 {
			text = number.Whole(l.Dropped[why]) + " " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// CoalescedCauses lists the causes of reads with several chunks, with the setting that ends each.
const CoalescedCauses = "a proxy buffers (nginx: proxy_buffering off, or X-Accel-Buffering: no in the answers), " +
	"the engine sends tokens in groups (its stream interval), or this machine reads late (read delay)"

// AttainmentTexts returns the numerator and denominator of attainment and of service attainment, as texts.
func AttainmentTexts(l measure.Ledger) (attainment, service string) {
	attainment = fmt.Sprintf("%s good of %s expected", number.Whole(l.Good), number.Whole(l.Judged()))
	if l.Unjudged > 0 {
		attainment += fmt.Sprintf(" and judged, %s not judged", number.Whole(l.Unjudged))
	}
	service = fmt.Sprintf("%s good of %s eligible", number.Whole(l.Good), number.Whole(l.Eligible))
	return attainment, service
}

// MissingText says, after another text, how many requests were never sent or had not ended when the ledger was written.
// It returns "" if there are none.
func MissingText(l measure.Ledger) (text string) {
	if l.Unsent() > 0 {
		text = ", " + DroppedText(l)
	}
	if n := l.InFlight + l.Waiting; n > 0 {
		text += fmt.Sprintf(", %s not ended when the ledger was written", number.Whole(n))
	}
	return text
}

// shareText formats a share with four digits. It truncates: a share just below a bound must not look as if it reached
// the bound.
func shareText(share float64, known bool) string {
	if !known {
		return "no data"
	}
	return fmt.Sprintf("%.4f", math.Floor(share*1e4+1e-9)/1e4)
}
