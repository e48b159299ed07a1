package analysis

import "time"

// Dispersion measures how evenly requests arrive, by the number of requests in windows of one length. Windows start at
// the first row's instant. Only whole windows count.
type Dispersion struct {
	Window  time.Duration
	Windows int64
	Mean    float64 // requests per window
	Peak    int64   // most requests in one window
	// Index is the variance of the requests per window over their mean: 1 for a Poisson process, 0 for a metronome.
	// Without a whole window, Index and PeakToMean are 0.
	Index, PeakToMean float64
}

// dispersion counts rows that come in due order.
type dispersion struct {
	window time.Duration
	first  time.Duration
	place  int64 // index of the current window, from 0
	rows   int64 // in the current window

	sum, peak int64 // of all earlier windows
	squares   float64
}

func (d *dispersion) add(offset time.Duration) {
	if d.rows == 0 { // true only at the first row: later the current window always has a row
		d.first = offset
	}
	if place := int64((offset - d.first) / d.window); place != d.place {
		d.sum += d.rows
		d.squares += float64(d.rows) * float64(d.rows)
		d.peak = max(d.peak, d.rows)
		d.place, d.rows = place, 0
	}
	d.rows++
}

// figures leaves out the last window, which may be incomplete.
func (d *dispersion) figures() Dispersion {
	out := Dispersion{Window: d.window, Windows: d.place, Peak: d.peak}
	if d.place == 0 {
		return out
	}
	n := float64(d.place)
	out.Mean = float64(d.sum) / n
	out.Index = (d.squares/n - out.Mean*out.Mean) / out.Mean
	out.PeakToMean = float64(d.peak) / out.Mean
	return out
}
