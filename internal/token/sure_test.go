package token

// A sure tokenizer is for texts that can be counted: an error ends the test.
type sure struct{ *Tokenizer }

func (s sure) Count(text []byte) int {
	n, err := s.Tokenizer.Count(text)
	if err != nil {
		panic(err)
	}
	return n
}

func (s sure) Encode(text []byte) []int {
	ids, err := s.Tokenizer.Encode(text)
	if err != nil {
		panic(err)
	}
	return ids
}

func (s sure) Cut(text []byte, n int) (prefix []byte, tokens int) {
	prefix, tokens, err := s.Tokenizer.Cut(text, n)
	if err != nil {
		panic(err)
	}
	return prefix, tokens
}
