package scrape

import (
	"strconv"
	"testing"
	"time"

	"replayd/internal/secret"
)

func TestHistory(t *testing.T) {
	type look struct {
		start  int // start of the process; 0: the page has none
		tokens float64
	}
	for _, c := range []struct {
		name     string
		looks    []look
		restarts int
		shared   bool
	}{
		{"one process", []look{{1, 10}, {1, 20}, {1, 20}}, 0, false},
		{"a restart", []look{{1, 10}, {2, 5}, {2, 9}}, 1, false},
		{"a restart that counts faster", []look{{1, 10}, {2, 50}}, 1, false},
		{"a restart at every look", []look{{1, 10}, {2, 12}, {3, 9}, {4, 11}, {5, 8}, {6, 12}}, 5, false},
		{"two processes in turn", []look{{1, 10}, {2, 50}, {1, 12}}, 1, true},
		{"two processes in turn, in runs", []look{{1, 10}, {2, 50}, {2, 51}, {2, 52}, {1, 12}}, 1, true},
		{"no start: one process", []look{{0, 10}, {0, 20}}, 0, false},
		{"no start: a restart", []look{{0, 1000}, {0, 5}, {0, 9}, {0, 15}, {0, 1100}}, 1, false},
		{"no start: two restarts", []look{{0, 1000}, {0, 5}, {0, 9}, {0, 3}, {0, 15}}, 2, false},
		{"no start: two in turn", []look{{0, 1000}, {0, 50}, {0, 1010}, {0, 55}, {0, 1020}}, 2, true},
		{"no start: three in turn", []look{{0, 1000}, {0, 50}, {0, 500}, {0, 1010}, {0, 55}, {0, 505}, {0, 1020}}, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h history
			restarts, shared := 0, false
			for _, l := range c.looks {
				var start time.Time
				if l.start > 0 {
					start = time.Unix(int64(l.start), 0)
				}
				var restarted bool
				restarted, shared = h.add(start, &Reading{Figures: []Figure{{Quantity: quantity("prompt_tokens"), Value: l.tokens}}})
				if restarted {
					restarts++
				}
			}
			if restarts != c.restarts || shared != c.shared {
				t.Errorf("want %d restarts and shared %v, got %d and %v", c.restarts, c.shared, restarts, shared)
			}
		})
	}
}

// shared becomes false when only one process answers at the address.
func TestHistoryForgets(t *testing.T) {
	var h history
	shared := false
	look := func(start int64, tokens float64) {
		_, shared = h.add(time.Unix(start, 0), &Reading{Figures: []Figure{{Quantity: quantity("prompt_tokens"), Value: tokens}}})
	}
	look(1, 10)
	look(2, 50)
	look(1, 12)
	for i := range rememberedFalls {
		if !shared {
			t.Fatalf("want it shared still after %d looks", i)
		}
		look(1, 13)
	}
	if shared {
		t.Error("want it forgotten")
	}
}

// Output tokens are counted from the first page that has them, over restarts and over pages that lack them, for all ranks.
func TestGeneratedTokens(t *testing.T) {
	var h history
	page := func(counts ...float64) {
		r := &Reading{}
		for rank, n := range counts {
			r.Figures = append(r.Figures, Figure{Quantity: generationTokens, Rank: secret.Set(nil).Text(strconv.Itoa(rank), 8), Value: n})
		}
		h.add(time.Time{}, r)
	}
	page()
	if h.tokens != nil {
		t.Error("a page without the counter counts")
	}
	page(1000, 50)
	page(1010, 51)
	page()
	page(1020, 51)
	page(5, 60) // the first rank restarted
	page(7, 60)
	if want := 10.0 + 1 + 10 + 5 + 9 + 2; h.generated != want {
		t.Errorf("got %v tokens, want %v", h.generated, want)
	}
}
