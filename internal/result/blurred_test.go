package result

import (
	"strings"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/test/measuretest"
)

// Merged reads are reported from 1 read in 100 on.
func TestBlurred(t *testing.T) {
	table := func(merged, reads int) (*Summary, string) {
		s := NewSummary(measure.SLO{}, measure.SessionSLO{})
		r := measuretest.Request("", 0, measure.OK, time.Millisecond)
		r.Timeline.MergedReads = merged
		for range reads {
			r.Timeline.ReadDelays = append(r.Timeline.ReadDelays, 2*time.Millisecond)
		}
		s.Observe(r)
		var b strings.Builder
		if err := s.WriteTable(&b, measure.Ledger{}, 0); err != nil {
			t.Fatal(err)
		}
		return s, b.String()
	}
	for _, c := range []struct {
		merged, reads int
		want          string
	}{
		{0, 100, ""},
		{1, 101, ""},
		{1, 100, "coalesced reads         1 of 100 (1 %) held several chunks: the times of all but the last chunk are too late\n" +
			"read delay              mean 2.0 ms, p99 2.0 ms, from the arrival of bytes to their read\n"},
		{3, 0, "coalesced reads         3 held several chunks: the times of all but the last chunk are too late\n"},
	} {
		s, got := table(c.merged, c.reads)
		if s.blurred() != (c.want != "") || !strings.Contains(got, c.want) || strings.Contains(got, "coalesced reads") != (c.want != "") {
			t.Errorf("%d of %d: want %q, got %s", c.merged, c.reads, c.want, got)
		}
		if n := s.readDelay.Durations().N; s.merged != int64(c.merged) || n != int64(c.reads) {
			t.Errorf("want %d of %d, got %d of %d", c.merged, c.reads, s.merged, n)
		}
	}
}

// A run tells how many of its requests were sent twice.
func TestSentTwice(t *testing.T) {
	s := NewSummary(measure.SLO{}, measure.SessionSLO{})
	for i := range 3 {
		r := measuretest.Request("", 0, measure.OK, time.Millisecond)
		r.Retried = i == 1
		s.Observe(r)
		var b strings.Builder
		if err := s.WriteTable(&b, measure.Ledger{Outcomes: map[measure.Outcome]int64{measure.OK: int64(i + 1)}}, 0); err != nil {
			t.Fatal(err)
		}
		want := []string{"", "1 (50 % of those sent)", "1 (33.3 % of those sent)"}[i]
		if got := b.String(); !strings.Contains(got, want) || strings.Contains(got, "sent twice") != (want != "") {
			t.Errorf("want %q, got\n%s", want, got)
		}
	}
}
