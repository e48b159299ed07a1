package openai

// usualBytes is the largest buffer that is kept for the next answer.
const usualBytes = 64 << 10

// emptied returns b with length 0 for the next answer, or nil if b is larger than usualBytes.
func emptied(b []byte) []byte {
	if cap(b) > usualBytes {
		return nil
	}
	return b[:0]
}
