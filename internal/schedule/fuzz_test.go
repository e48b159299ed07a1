package schedule

import (
	"testing"
	"time"
)

// FuzzOptions checks that any plan that New accepts can be played: rows in order and inside their loops, and the
// same rows when joining at any of them.
func FuzzOptions(f *testing.F) {
	f.Add(uint8(0), 1.0, int64(0), int64(0), uint8(1), int64(0), int64(0), 0.0, 0.0, 0, 0, int64(0), 0.0, int64(0), int64(0))
	f.Add(uint8(3), 1.0, int64(0), int64(0), uint8(0), int64(0), int64(0), 3.0, 0.0, 0, 100, int64(0), 2.5, int64(3e9), int64(1e9))
	f.Add(uint8(4), 1.0, int64(1e9), int64(0), uint8(2), int64(9e9), int64(1e9), 2.0, 0.5, 0, 9, int64(7e9), 0.0, int64(0), int64(0))
	f.Add(uint8(5), 1.0, int64(0), int64(0), uint8(0), int64(0), int64(0), 2.0, 0.0, 7, 50, int64(0), 0.0, int64(0), int64(0))
	f.Add(uint8(6), 1.0, int64(0), int64(0), uint8(1), int64(0), int64(0), 0.0, 0.0, 0, 50, int64(5), 0.0, int64(0), int64(0))
	src := at(0, 0, sec, 4*sec, 4*sec, 4*sec, 9*sec)
	f.Fuzz(func(t *testing.T, kind uint8, speed float64, from, to int64, mode uint8, every, _ int64, rate, burstiness float64,
		users, rows int, duration int64, to2 float64, over, hold int64,
	) {
		o := Options{
			Pattern: Pattern{
				Arrival: []Arrival{Exact, Spread, Constant, Poisson, Gamma, Users, Concurrency}[kind%7],
				Speed:   speed, Rate: rate, Burstiness: burstiness, Users: users % 100,
			},
			Repeat: Repeat{
				Mode: []Mode{Once, Loops, Loops}[mode%3], Align: []Align{WallClock, Start}[mode%2],
				Every: time.Duration(every),
			},
			From:     time.Duration(from),
			To:       time.Duration(to),
			Rows:     rows % 1000,
			Duration: time.Duration(duration),
			Seed:     uint64(kind),
		}
		if over != 0 || hold != 0 {
			o.Stages = []Stage{{Rate: rate, Hold: time.Duration(hold)}, {Rate: to2, Over: time.Duration(over)}}
		}
		p, err := New(src, o)
		if err != nil {
			return
		}
		l := p.Loop(epoch, epoch.Add(time.Duration(users)*time.Second))
		all := dues(t, p, l, l.Start)
		if len(all) == 0 || !p.Closed() && o.Mode == Loops && p.every < p.length {
			t.Fatalf("%+v: %d rows, %v to the last in %v", o, len(all), p.length, p.every)
		}
		for i, d := range all {
			if at := d.At.Sub(l.Start); at < 0 || at > p.length || i > 0 && d.At.Before(all[i-1].At) {
				t.Fatalf("%+v: row %d at %v, the last at %v", o, i, at, p.length)
			}
		}
		middle := all[len(all)/2].At
		rest := dues(t, p, l, middle)
		if first := all[len(all)-len(rest)]; !p.Closed() && (len(rest) > len(all) || !first.At.Equal(middle)) {
			t.Fatalf("%+v: from %v %d rows of %d", o, middle, len(rest), len(all))
		}
	})
}
