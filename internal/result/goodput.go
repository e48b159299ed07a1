package result

import "math"

// Servers is how many servers such as the one that was measured serve a number of requests a second within all bounds: the
// rate over the goodput, rounded up. False when nothing was goodput.
func Servers(requests, goodput float64) (int, bool) {
	if !(goodput > 0) || !(requests >= 0) || requests/goodput > math.MaxInt32 {
		return 0, false
	}
	return int(math.Ceil(requests / goodput)), true
}
