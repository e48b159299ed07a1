package gpu

import (
	"fmt"
	"math"
	"time"

	"replayd/internal/secret"
)

// A Reading is what a source gave at one time. Its zero value has no devices.
type Reading struct {
	Devices []Device
	Sampled time.Time // when the newest value was sampled; zero: the source does not say
	Bad     int       // lines, rows and values that were left out

	first secret.Text // why the first of them was left out; "": none was
}

// Drop counts something that is left out.
func (r *Reading) Drop(format string, args ...any) {
	if r.Bad++; r.first == "" {
		r.first = shorten(fmt.Sprintf(format, args...))
	}
}

// unsigned is -1 in 32 bits: drivers and exporters pass it on for a value that they do not have.
const unsigned = math.MaxUint32

// Add stores a raw value in DCGM's unit, which the source has under a name. DCGM's blanks are no value. Nor is a value
// outside the range of its field, which is counted.
func (r *Reading) Add(d *Device, f *Field, name string, raw float64) {
	if !f.Blank(raw) {
		r.add(d, f, name, raw, f.scale)
	}
}

// slack is by how much a share may exceed 1, and other figures their bound: it is rounded down to it.
const slack = 1.01

func (r *Reading) add(d *Device, f *Field, name string, raw float64, by scale) {
	v := by.of(raw)
	if raw == unsigned || !(v >= f.least && v <= f.most*slack) {
		r.Drop("%s of GPU %s %s: want %g to %g, got %.10g", name, d.Index, d.UUID, f.least/by.of(1), f.most/by.of(1), raw)
		return
	}
	d.add(f, min(v, f.most))
}
