package scrape

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// Field numbers of io.prometheus.client (github.com/prometheus/client_model, io/prometheus/client/metrics.proto).
const (
	familyName, familyMetric                 = 1, 4
	metricLabel, metricHistogram             = 1, 7
	histogramNegative, histogramPositive     = 10, 13 // deltas, packed varints
	histogramNegativeFl, histogramPositiveFl = 11, 14 // counts, packed doubles
)

// protobuf reads length-prefixed families. Each family gets its own parser: the parser recurses once for each family
// without a metric, and 16 MiB of them would overflow the stack.
func (r *reader) protobuf(body []byte) error {
	for n, rest := 1, body; len(rest) > 0; n++ {
		if n > maxSamples {
			return errorOf(ReasonTooLarge, "want a page of at most %d families, got more", maxSamples)
		}
		size, width := binary.Uvarint(rest)
		if width < 0 {
			return errorOf(ReasonParse, "family %d: want its length, got %q", n, rest[:min(len(rest), binary.MaxVarintLen64)])
		}
		if width == 0 {
			return errorOf(ReasonParse, "family %d: the page ends in its length, got %q", n, rest)
		}
		if size > uint64(len(rest)-width) {
			return errorOf(ReasonParse, "family %d: the page ends in it: want %d bytes, got %d", n, size, len(rest)-width)
		}
		message := rest[width : width+int(size)]
		rest = rest[width+int(size):]
		if err := r.family(message); err != nil {
			if e, ok := errors.AsType[*Error](err); ok && e.Reason == ReasonTooLarge {
				return err
			}
			name := nameIn(message)
			if r.page.Bad++; r.page.first == nil {
				r.page.first = errorOf(ReasonParse, "family %d, %q: %s", n, clip(name, 80), clip(err.Error(), 200))
			}
			if name == "" { // it may be any
				return r.page.first
			}
			r.damage(familyOf(name))
		}
	}
	if r.page.Total == 0 { // nothing on it is a metric
		return r.page.first
	}
	return nil
}

// family reads the metrics of one family.
func (r *reader) family(message []byte) error {
	message, err := r.bounded(message)
	if err != nil || len(message) == 0 {
		return err
	}
	frame := append(binary.AppendUvarint(nil, uint64(len(message))), message...)
	p := textparse.NewProtobufParser(frame, false, true, false, false, labels.NewSymbolTable())
	for {
		entry, native, err := nextEntry(p)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		value := 0.0
		switch entry {
		case textparse.EntryHistogram:
		case textparse.EntrySeries:
			_, _, value = p.Series()
		default:
			continue
		}
		if err := r.count(); err != nil {
			return err
		}
		if err := r.add(labelsOf(p), value, native); err != nil {
			return err
		}
	}
}

// impossible marks an inconsistent native histogram. No valid histogram has this schema.
var impossible = &histogram.FloatHistogram{Schema: math.MaxInt32}

// nextEntry returns the parser's next entry. It validates native histograms, because the parser of v0.315.0 checks spans
// against buckets only in the first histogram of a family. It turns a panic of the parser into an error.
func nextEntry(p textparse.Parser) (entry textparse.Entry, native *histogram.FloatHistogram, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("the parser cannot read it: %v", broken)
		}
	}()
	entry, err = p.Next()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("a field goes past the end")
	}
	if err != nil || entry != textparse.EntryHistogram {
		return entry, nil, err
	}
	_, _, whole, float := p.Histogram()
	switch {
	case whole == nil:
		return entry, float, nil
	case whole.Validate() != nil: // this Validate also checks the sum of the buckets against the count
		return entry, impossible, nil
	}
	return entry, whole.ToFloat(nil), nil
}

// bounded removes the metrics over the bounds from a family before it is parsed: an empty bucket of two bytes takes
// sixty bytes of memory, and the parser reads all labels again for each bucket.
func (r *reader) bounded(message []byte) ([]byte, error) {
	metrics, large := 0, 0
	err := fields(message, func(number uint64, data, _ []byte) {
		if number == familyMetric {
			metrics++
			if isLarge(data) {
				large++
			}
		}
	})
	if err != nil || metrics == 0 {
		return nil, err
	}
	if r.page.Total+metrics > maxSamples {
		return nil, errorOf(ReasonTooLarge, "want a page of at most %d samples, got more", maxSamples)
	}
	if large == 0 {
		return message, nil
	}
	r.page.Total += large
	r.drops(nameIn(message), large)
	lean := make([]byte, 0, len(message))
	err = fields(message, func(number uint64, data, whole []byte) {
		if number != familyMetric || !isLarge(data) {
			lean = append(lean, whole...)
		}
	})
	return lean, err
}

// isLarge reports whether a metric is over the bounds. It is false for a malformed metric, so that the parser reports
// the error.
func isLarge(metric []byte) bool {
	labels, buckets := 0, 0
	_ = fields(metric, func(number uint64, data, _ []byte) {
		switch number {
		case metricLabel:
			labels++
		case metricHistogram:
			_ = fields(data, func(number uint64, data, _ []byte) {
				switch number {
				case histogramNegativeFl, histogramPositiveFl:
					buckets += max(1, len(data)/8)
				case histogramNegative, histogramPositive:
					buckets += varints(data)
				}
			})
		}
	})
	return len(metric) > maxLineBytes || labels > maxLabels || buckets > maxNativeBuckets
}

// varints returns one more than the number of varints in a packed field. The last byte of each is below 0x80.
func varints(packed []byte) int {
	n := 1
	for _, b := range packed {
		if b < 0x80 {
			n++
		}
	}
	return n
}

// nameIn returns the name of a family.
func nameIn(message []byte) (name string) {
	_ = fields(message, func(number uint64, data, _ []byte) {
		if number == familyName {
			name = string(data)
		}
	})
	return name
}

// fields calls f with each field of a protobuf message: the field number, the content without the length, and all bytes
// of the field.
func fields(message []byte, f func(number uint64, data, whole []byte)) error {
	for len(message) > 0 {
		tag, width := binary.Uvarint(message)
		if width <= 0 {
			return fmt.Errorf("want the number of a field, got %q", message[:min(len(message), 8)])
		}
		from, size := width, uint64(0)
		switch tag & 7 {
		case 0: // a varint
			if _, width = binary.Uvarint(message[from:]); width <= 0 {
				return fmt.Errorf("field %d: want a number, got %q", tag>>3, message[from:min(len(message), from+8)])
			}
			size = uint64(width)
		case 1:
			size = 8
		case 2:
			if size, width = binary.Uvarint(message[from:]); width <= 0 {
				return fmt.Errorf("field %d: want its length, got %q", tag>>3, message[from:min(len(message), from+8)])
			}
			from += width
		case 5:
			size = 4
		default:
			return fmt.Errorf("field %d: want the kinds 0, 1, 2 or 5, got %d", tag>>3, tag&7)
		}
		if size > uint64(len(message)-from) {
			return fmt.Errorf("field %d: want %d bytes, got %d", tag>>3, size, len(message)-from)
		}
		to := from + int(size)
		f(tag>>3, message[from:to], message[:to])
		message = message[to:]
	}
	return nil
}
