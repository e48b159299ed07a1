package outside

import "math/rand/v2"

// Mutate changes a line in one of several ways.
func Mutate(line string, rng *rand.Rand) (how string, lines []string) {
	at := rng.IntN(max(1, len(line)))
	switch rng.IntN(6) {
	case 0:
		return "dropped", nil
	case 1:
		return "repeated", []string{line, line}
	case 2:
		return "cut", []string{line[:at]}
	case 3:
		return "without its beginning", []string{line[at:]}
	case 4:
		return "torn", []string{line[:at], line[at:]}
	}
	garbled := []byte(line)
	if len(garbled) > 0 {
		garbled[at] = "\x00\xff\"{}\\ x9=,"[rng.IntN(11)]
	}
	return "garbled", []string{string(garbled)}
}
