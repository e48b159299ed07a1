package chart

import (
	"math"
	"slices"

	"replayd/internal/number"
)

// A scale maps values of an axis to places and holds the ticks.
type scale struct {
	lo, hi float64
	log    bool
	ticks  []float64
	step   float64 // between ticks; 0 for a logarithmic scale
}

// at returns the place of a value, 0 to 1000 within the ends.
func (s scale) at(v float64) float64 {
	if s.log {
		return 1000 * math.Log(v/s.lo) / math.Log(s.hi/s.lo)
	}
	return 1000 * (v - s.lo) / (s.hi - s.lo)
}

// value returns the value at a place, 0 to 1000.
func (s scale) value(at float64) float64 {
	if s.log {
		return s.lo * math.Pow(s.hi/s.lo, at/1000)
	}
	return s.lo + (s.hi-s.lo)*at/1000
}

const maxTicks = 40

// scaleOf returns the scale of an axis for values. With round it ends at ticks, as y axes do.
func scaleOf(a Axis, values []float64, round bool) scale {
	if n := len(a.Names); n > 0 {
		return scale{lo: -0.6, hi: float64(n) - 0.4}
	}
	values = slices.DeleteFunc(values, func(v float64) bool { return !a.valid(v) })
	lo, hi, given := 0.0, 1.0, a.Ends != [2]float64{}
	if given {
		lo, hi = a.Ends[0], a.Ends[1]
	} else if len(values) > 0 {
		lo, hi = slices.Min(values), slices.Max(values)
	}
	if a.Ticks != nil {
		return scaleAt(a, lo, hi)
	}
	if a.Log {
		return logScale(lo, hi, given)
	}
	if !given && a.Zero {
		lo, hi = min(0, lo), max(0, hi)
	}
	if hi-lo <= 1e-9*max(math.Abs(lo), math.Abs(hi)) { // all values are the same, or nearly
		margin := max(math.Abs(lo)*0.1, 1e-3)
		if lo == 0 {
			margin = 1
		}
		if a.Zero {
			hi += margin
		} else {
			lo, hi = lo-margin, hi+margin
		}
	}
	step := NiceStep((hi-lo)/5.5, a.Unit)
	if a.Whole {
		step = max(step, 1)
	}
	if round && !given {
		lo, hi = step*math.Floor(lo/step+1e-9), step*math.Ceil(hi/step-1e-9)
	}
	s := scale{lo: lo, hi: hi, step: step}
	for from, i := math.Ceil(lo/step-1e-9), 0.0; (from+i)*step <= hi+1e-9*step && i < maxTicks; i++ {
		s.ticks = append(s.ticks, (from+i)*step)
	}
	return s
}

// scaleAt returns the scale of an axis with its own ticks. It ends a little beyond the values.
func scaleAt(a Axis, lo, hi float64) scale {
	s := scale{log: a.Log, ticks: a.Ticks}
	if a.Log {
		s.lo, s.hi = lo/1.25, hi*1.25
		return s
	}
	s.lo, s.hi = min(0, lo), hi+0.04*(hi-min(0, lo))
	return s
}

// times lists the steps of a time axis from 10 s up, in seconds.
var times = []float64{10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400}

// NiceStep rounds a step up to 1, 2 or 5 times a power of ten, or to a round time.
func NiceStep(step float64, unit string) float64 {
	second := map[string]float64{"s": 1, "ms": 1000}[unit]
	if second > 0 && step > 5*second {
		for _, round := range times {
			if round*second >= step*0.999 {
				return round * second
			}
		}
		return 86400 * second * math.Ceil(step/86400/second)
	}
	return ladder(step, true)
}

// logScale returns a scale that ends at 1, 2 or 5 times powers of ten and spans at least half a decade.
func logScale(lo, hi float64, given bool) scale {
	if !(lo > 0) {
		lo = hi / 1000
	}
	s := scale{lo: lo, hi: hi, log: true}
	if !given {
		s.lo, s.hi = ladder(lo, false), ladder(hi, true)
		for s.hi/s.lo < 4.99 {
			s.hi = ladder(s.hi*1.01, true)
		}
	}
	decades := math.Log10(s.hi / s.lo)
	for e := math.Floor(math.Log10(s.lo)); e <= math.Log10(s.hi)+1e-9; e++ {
		for _, n := range []float64{1, 2, 5} {
			v := n * math.Pow(10, e)
			if v < s.lo*0.999 || v > s.hi*1.001 || n != 1 && decades > 2.01 || decades > 6 && math.Mod(e, 2) != 0 {
				continue
			}
			s.ticks = append(s.ticks, v)
		}
	}
	return s
}

// ladder rounds a value up or down to 1, 2 or 5 times a power of ten.
func ladder(v float64, up bool) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	last := power
	for _, n := range []float64{1, 2, 5, 10} {
		rung := n * power
		if up && rung >= v*0.999 {
			return rung
		}
		if !up && rung > v*1.001 {
			return last
		}
		last = rung
	}
	return last
}

// tickText formats a tick of an axis. On a logarithmic axis each tick has its own unit.
func tickText(v float64, unit string, s scale) string {
	most, log := s.hi, s.log
	of := map[string]float64{"s": 1, "ms": 1e-3}[unit] // seconds
	switch {
	case v == 0 && unit != "%":
		return "0"
	case of > 0 && log:
		return tickDuration(v*of, v*of)
	case of > 0:
		return tickDuration(v*of, most*of)
	case unit == "%":
		return number.Digits(v, 6) + " %"
	}
	for _, by := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if most >= 9.9995*by.of && (!log || v >= by.of) {
			return number.Digits(v/by.of, 6) + by.name
		}
	}
	if s.step > 0 && s.step < 0.01*math.Abs(v) { // three digits would show neighboring ticks alike
		return number.Places(v, max(0, -int(math.Floor(math.Log10(s.step)+1e-9))))
	}
	return number.Short(v)
}

// tickDuration formats seconds in the unit that suits the maximum of the axis.
func tickDuration(s, most float64) string {
	switch {
	case most >= 7200:
		return number.Digits(s/3600, 4) + " h"
	case most >= 120:
		return number.Digits(s/60, 4) + " min"
	case most >= 0.9999:
		return number.Digits(s, 6) + " s"
	case most >= 0.9999e-3:
		return number.Digits(s*1e3, 6) + " ms"
	default:
		return number.Digits(s*1e6, 6) + " µs"
	}
}
