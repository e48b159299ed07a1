package trace

import (
	"math"
	"testing"
)

// On each side of a comparison each round has each pod once. All pairs of pods come about equally often, and so do the distances between two requests
// of a pod on both sides: else the queues of equal servers would differ.
func TestPodsOfBothSides(t *testing.T) {
	for _, pods := range []uint64{1, 2, 3, 4, 16} {
		rounds := 4000 * pods
		pairs := make([]int, pods*pods)
		distances := [2]map[uint64]int{{}, {}}
		last := [2]map[uint64]uint64{{}, {}}
		for round := range rounds {
			for side, candidate := range []bool{false, true} {
				seen := map[uint64]bool{}
				for i := range pods {
					place := round*pods + i
					pod := OnSide(place, candidate, pods) % pods
					seen[pod] = true
					if before, known := last[side][pod]; known {
						distances[side][place-before]++
					}
					last[side][pod] = place
					if candidate {
						pairs[pod*pods+OnSide(place, false, pods)%pods]++
					}
				}
				if len(seen) != int(pods) {
					t.Fatalf("round %d of %d pods has %d", round, pods, len(seen))
				}
			}
		}
		mean := float64(rounds) / float64(pods)
		for pair, n := range pairs {
			// A round has its pairs together or not: those of a pod with one pod of the other side.
			if math.Abs(float64(n)-mean) > 5*math.Sqrt(mean) {
				t.Errorf("%d pods: pair %d comes %d times, want about %.0f", pods, pair, n, mean)
			}
		}
		for d := range 2 * pods {
			n, m := float64(distances[0][d]), float64(distances[1][d])
			if math.Abs(n-m) > 6*math.Sqrt((n+m)*float64(pods))+1 {
				t.Errorf("%d pods: the distance %d comes %.0f times on the baseline and %.0f times on the candidate", pods, d, n, m)
			}
		}
	}
}
