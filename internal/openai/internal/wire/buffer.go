package wire

// grown returns b with room for n more bytes, up to most bytes in total. It doubles the capacity, so that it leaves less
// garbage than append, which grows large slices by a quarter.
func grown(b []byte, n, most int) []byte {
	if len(b)+n <= cap(b) || len(b)+n > most {
		return b
	}
	larger := make([]byte, len(b), min(max(2*cap(b), len(b)+n), most))
	copy(larger, b)
	return larger
}
