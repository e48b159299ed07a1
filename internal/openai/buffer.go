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
