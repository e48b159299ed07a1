package report

import (
	"strings"
	"testing"

	"replayd/internal/result"
)

// The page shows coalesced reads in a tile and in the section on trust, and the export keeps them.
func TestReadTogether(t *testing.T) {
	together := func(reads, merged int, delay float64) Page {
		run := result.Run{Rows: steps3(100, 100, 100).rows}
		for i := range run.Rows {
			run.Rows[i].ID = "a/0/1"
			run.Rows[i].Reads, run.Rows[i].ReadDelay = reads, delay
		}
		run.Rows[0].Merged = merged
		return pageOf(run)
	}
	for _, c := range []struct {
		reads, merged int
		says, tile    string
	}{
		{10, 0, "", ""},
		{10, 29, "", ""}, // of 3,000
		{10, 30, "30 reads of 3,000 (1 %) held several chunks. ", "1 %"},
		{0, 5, "5 reads held several chunks. ", "5"},
	} {
		p := together(c.reads, c.merged, 4)
		text, title, tile := "", "", ""
		for _, s := range p.Sections {
			if s.Short == "Trust" {
				text, title = strings.Join(s.Text, "\n"), s.Title
			}
		}
		for _, one := range p.Tiles {
			if one.Name == "Coalesced reads" {
				tile = one.Text
			}
		}
		said := c.says != ""
		if !strings.Contains(text, c.says) || strings.Contains(text, "held several") != said || strings.Contains(title, "several chunks") != said || tile != c.tile {
			t.Errorf("%d of %d: want %q and %q, got %q, %q and %q", c.merged, c.reads, c.says, c.tile, title, text, tile)
		}
	}
}

// The page says how long connections took that requests opened for themselves.
func TestConnectTime(t *testing.T) {
	run := result.Run{Rows: steps3(100, 100, 100).rows}
	for i := range 3 {
		run.Rows[i].Connect = float64(i + 1)
	}
	const want = "3 of 300 requests opened a connection of their own: half within 2 ms, 99 % within 2.98 ms."
	for _, s := range pageOf(run).Sections {
		if s.Short == "Trust" && !strings.Contains(strings.Join(s.Text, "\n"), want) {
			t.Errorf("want %q, got %q", want, s.Text)
		}
	}
}

// The page shows in a tile how many requests were sent twice.
func TestSentTwice(t *testing.T) {
	for twice, want := range []string{"", "1", "2"} {
		run := result.Run{Rows: steps3(100, 100, 100).rows}
		for i := range twice {
			run.Rows[i].Retried = true
		}
		got := ""
		for _, one := range pageOf(run).Tiles {
			if one.Name == "Sent twice" {
				got = one.Text
			}
		}
		if got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}
