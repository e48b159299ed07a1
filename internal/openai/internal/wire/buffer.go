package wire

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
