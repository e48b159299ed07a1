package analysis

import "time"

// Dispersion is how evenly requests come, by how many of them fall into windows of one length. Whole windows count, from the
// first row's instant on.
type Dispersion struct {
	Window  time.Duration
	Windows int64
	Mean    float64 // requests in a window
	Peak    int64   // most in one
	// Index is the variance of these numbers over their mean: 1 for a Poisson process, 0 for a metronome; 0 too without a
	// whole window. PeakToMean is 0 there.
	Index, PeakToMean float64
}

// dispersion counts rows that come in due order.
type dispersion struct {
	window time.Duration
	first  time.Duration
	place  int64 // of the window that is being counted, from 0
	rows   int64 // in it

	sum, peak int64 // of the windows before it
	squares   float64
}

func (d *dispersion) add(offset time.Duration) {
	if d.rows == 0 { // only at the first row: a window that is being counted has one
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

// figures leaves the last window out: no row says that it is whole.
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
