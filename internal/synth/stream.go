package synth

import "math/bits"

// A domain separates streams for different uses: block ids, row numbers and so on.
type domain uint64

const (
	blockDomain  domain = 1
	rowDomain    domain = 2
	partDomain   domain = 3 // messages of conversations
	lengthDomain domain = 4 // lengths and delays of made-up conversations
	rootDomain   domain = 5 // which tree a row of a rescaled trace is in
	arriveDomain domain = 6 // instants, lengths and branches of a made-up trace
)

// A stream is an endless sequence of draws, the SplitMix64 of Steele, Lea and Flood (OOPSLA 2014): small enough to
// have one for each block, and draw i needs nothing but the key and i.
type stream uint64

// newStream's keys are distinct for distinct ids, as mix is a bijection and all before id is the same.
func newStream(seed uint64, salt uint64, d domain, id uint64) stream {
	h := mix(seed + golden)
	h = mix(h ^ uint64(d))
	h = mix(h ^ salt)
	return stream(mix(h ^ id))
}

// below draws an integer from 0 to n − 1, by multiplication instead of division: its bias is below n / 2⁶⁴.
func (s *stream) below(n uint64) int {
	hi, _ := bits.Mul64(s.Uint64(), n)
	return int(hi)
}

// Uint64 returns the next draw. It implements rand.Source.
func (s *stream) Uint64() uint64 {
	*s += golden
	return mix(uint64(*s))
}

const golden = 0x9e3779b97f4a7c15 // 2⁶⁴ / φ, odd

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
