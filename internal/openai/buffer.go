package openai

// usualBytes is what a buffer may keep from one answer to the next.
const usualBytes = 64 << 10

// emptied is b for the next answer, and lets go of what only a rare one needed.
func emptied(b []byte) []byte {
	if cap(b) > usualBytes {
		return nil
	}
	return b[:0]
}

// grown is b with room for n more bytes, up to most in all. It doubles, so that little is left behind for the garbage
// collector: append grows large slices by a quarter at a time.
func grown(b []byte, n, most int) []byte {
	if len(b)+n <= cap(b) || len(b)+n > most {
		return b
	}
	larger := make([]byte, len(b), min(max(2*cap(b), len(b)+n), most))
	copy(larger, b)
	return larger
}
