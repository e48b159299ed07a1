package gpu

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"replayd/internal/scrape"
)

// A Field is one metric of the vocabulary, a row of fields.csv.
type Field struct {
	ID    uint16      // DCGM field id
	Float bool        // DCGM type: double if true, else int64
	Names []string    // names on a dcgm-exporter's page: before DCGM 4.6 and since
	Kind  scrape.Kind // Gauge, Counter or Bits

	Name   string // series name without "replayd_gpu_"
	Reason string // value of the label reason if several fields share one series; else empty
	Help   string

	scale    scale    // from DCGM's unit to that of Name
	smi      []string // names in nvidia-smi, newest first; none: not available there
	smiScale scale

	others []other // names on other exporters' pages, the best first

	least, most float64 // values outside are none

	family *scrape.Family // on replayd's page
}

// Bits is the kind of a bit mask, kept unchanged in Device.Values; each bit is exported as a gauge of its own.
const Bits scrape.Kind = "bits"

// A scale is a factor times / by, and one of the two is 1. Division keeps results exact: 0.001 is not a float64, so 123
// × 0.001 can differ from 0.123, but 123 / 1000 cannot.
type scale struct{ times, by float64 }

func (s scale) of(v float64) float64 { return v * s.times / s.by }

// throttleReasons names the bits of the field throttle_reason, from the lowest (NVML's nvmlClocksEventReasons).
var throttleReasons = [...]string{
	"idle", "clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "hw_power_brake", "display_clocks",
}

//go:embed fields.csv
var fieldsCSV string

// A test checks that the embedded table has no errors.
var fields, errFields = parseFields(fieldsCSV)

// Fields returns all fields of the vocabulary, ordered by DCGM field id.
func Fields() []*Field { return slices.Clone(fields) }

// InstanceFields lists the ids of the fields with an entity level below the GPU (entityLevel in dcgm_fields.cpp): each
// MIG instance has its own value.
var InstanceFields = []uint16{230, 250, 251, 252, 253, 254, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008}

// Whole reports whether a field, such as power, always describes the whole GPU and never a MIG instance.
func (f *Field) Whole() bool { return !slices.Contains(InstanceFields, f.ID) }

// DCGM uses four sentinels for a missing value: blank, not found, not supported and not permitted. These constants are
// the first sentinel of each type (dcgm_structs.h). An int32 sentinel can appear in a field that was an int32 earlier.
// Only the four exact values are rejected, because a valid counter can exceed them.
const (
	BlankInt32  = 0x7ffffff0
	BlankInt32s = 4
	BlankInt64  = float64(0x7ffffffffffffff0) // as a float64 all four are 2^63
	BlankFloat  = float64(1 << 47)
)

// Blank reports whether a raw value says that DCGM has none.
func (f *Field) Blank(raw float64) bool {
	among := func(first float64) bool { return raw >= first && raw < first+BlankInt32s }
	return math.IsNaN(raw) || raw == BlankInt64 || among(BlankInt32) || f.Float && among(BlankFloat)
}

func parseFields(text string) (fields []*Field, err error) {
	const columns = "id,type,names,kind,name,reason,scale,smi,smi_scale,others,range,help"
	err = scrape.ReadTable("fields.csv", text, columns, func(row []string) error {
		f, err := parseField(row)
		if err == nil {
			fields = append(fields, f)
		}
		return err
	})
	return fields, err
}

func parseField(row []string) (*Field, error) {
	id, err := strconv.ParseUint(row[0], 10, 16)
	if err != nil {
		return nil, fmt.Errorf("id: want a number below 65536, got %q", row[0])
	}
	f := &Field{
		ID: uint16(id), Float: row[1] == "d", Names: alternatives(row[2]), Kind: scrape.Kind(row[3]),
		Name: row[4], Reason: row[5], smi: alternatives(row[7]), Help: row[11],
	}
	if row[1] != "d" && row[1] != "i" {
		return nil, fmt.Errorf("type: want i or d, got %q", row[1])
	}
	if f.Kind != scrape.Gauge && f.Kind != scrape.Counter && f.Kind != Bits {
		return nil, fmt.Errorf("kind: want gauge, counter or bits, got %q", row[3])
	}
	if f.scale, err = parseScale(row[6]); err != nil {
		return nil, fmt.Errorf("scale: %w", err)
	}
	if f.smiScale, err = parseScale(row[8]); err != nil {
		return nil, fmt.Errorf("smi_scale: %w", err)
	}
	for _, cell := range alternatives(row[9]) {
		o, err := parseOther(cell)
		if err != nil {
			return nil, fmt.Errorf("others: %w", err)
		}
		if f.others = append(f.others, o); strings.HasPrefix(o.name, "gpu_") {
			f.others = append(f.others, other{"amd_" + o.name, o.scale}) // the prefix of the exporter's examples
		}
	}
	if n, err := fmt.Sscanf(row[10], "%g to %g", &f.least, &f.most); n != 2 || err != nil || f.least >= f.most {
		return nil, fmt.Errorf("range: want two numbers like 0 to 1, got %q", row[10])
	}
	labels, kind := deviceLabels, f.Kind
	if f.Kind == Bits {
		kind = scrape.Gauge
	}
	if f.Kind == Bits || f.Reason != "" {
		labels = slices.Concat(labels, []string{"reason"})
	}
	f.family = scrape.NewFamily(namespace+f.Name, f.Help, kind, labels)
	return f, nil
}

// An other is the name of a field on the page of AMD's device-metrics-exporter or of all-smi, with its scale.
type other struct {
	name string
	scale
}

// parseOther parses "gpu_gfx_activity/100".
func parseOther(cell string) (other, error) {
	at := strings.IndexAny(cell, "*/")
	if at < 0 {
		at = len(cell)
	}
	s, err := parseScale(cell[at:])
	return other{cell[:at], s}, err
}

// parseScale parses "*1000000" or "/1000"; an empty string is 1.
func parseScale(s string) (scale, error) {
	if s == "" {
		return scale{1, 1}, nil
	}
	n, err := strconv.ParseUint(s[1:], 10, 53)
	switch {
	case err != nil || n == 0:
	case s[0] == '*':
		return scale{float64(n), 1}, nil
	case s[0] == '/':
		return scale{1, float64(n)}, nil
	}
	return scale{}, fmt.Errorf("want * or / and an integer ≥ 1, or nothing, got %q", s)
}

func alternatives(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ";")
}
