package gpu

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Field is one figure of the vocabulary, a row of fields.csv.
type Field struct {
	ID    uint16   // DCGM's number
	Float bool     // DCGM has it as a double; else as an int64
	Names []string // that a dcgm-exporter's page may have it under: of DCGM before 4.6, and since
	Kind  Kind

	Name   string // of its series, after "replayd_gpu_"
	Reason string // value of the label reason, where several fields are one series; else empty
	Help   string

	scale    scale    // from DCGM's unit to that of Name
	smi      []string // that nvidia-smi may know it by, the newest first; none: it has no name there
	smiScale scale
}

// A Kind says what a figure is.
type Kind string

// The kinds of figures. Bits are a mask, in Values as it is; each bit becomes a series of its own.
const (
	Gauge   Kind = "gauge"
	Counter Kind = "counter"
	Bits    Kind = "bits"
)

// A scale multiplies by one number and divides by another, one of them 1. 0.001 is no float64, and 123 × 0.001 need
// not be what 0.123 reads as; 123 / 1000 is.
type scale struct{ times, by float64 }

func (s scale) of(v float64) float64 { return v * s.times / s.by }

// throttleReasons are the bits of the field throttle_reason (NVML's nvmlClocksEventReasons).
var throttleReasons = []struct {
	bit  uint64
	name string
}{
	{0x1, "idle"},
	{0x2, "clocks_setting"},
	{0x4, "sw_power_cap"},
	{0x8, "hw_slowdown"},
	{0x10, "sync_boost"},
	{0x20, "sw_thermal"},
	{0x40, "hw_thermal"},
	{0x80, "hw_power_brake"},
	{0x100, "display_clocks"},
}

//go:embed fields.csv
var fieldsCSV string

// The table that is in the binary cannot be wrong: a test reads it.
var (
	fields, errFields = parseFields(fieldsCSV)
	fieldsByID        = indexFields(fields)
)

// Fields are all figures of the vocabulary, by DCGM's number.
func Fields() []*Field { return slices.Clone(fields) }

// ByID is the field with DCGM's number, nil where the vocabulary has none.
func ByID(id uint16) *Field { return fieldsByID[id] }

// InstanceFields have a level below the GPU (entityLevel in dcgm_fields.cpp), so that a MIG instance has its own.
var InstanceFields = []uint16{230, 250, 251, 252, 253, 254, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008}

// Whole tells whether a figure is always of the whole GPU, power among them, and never of a MIG instance of it.
func (f *Field) Whole() bool { return !slices.Contains(InstanceFields, f.ID) }

func indexFields(fields []*Field) map[uint16]*Field {
	index := map[uint16]*Field{}
	for _, f := range fields {
		index[f.ID] = f
	}
	return index
}

// DCGM's sentinels say that there is no value, and why not: blank, not found, not supported, not permitted. They lie
// from these on (dcgm_structs.h). That of int32 turns up where a figure was one once; it is looked for exactly, since
// an honest counter passes it.
const (
	BlankInt32  = 0x7ffffff0
	BlankInt32s = 4
	BlankInt64  = float64(0x7ffffffffffffff0) // as a double all four are 2^63
	BlankFloat  = float64(1 << 47)
)

// Value is what DCGM's raw value is in base units; false: it says that there is none.
func (f *Field) Value(raw float64) (float64, bool) {
	switch {
	case math.IsNaN(raw) || math.IsInf(raw, 0),
		f.Float && raw >= BlankFloat,
		raw >= BlankInt64,
		raw >= BlankInt32 && raw < BlankInt32+BlankInt32s,
		f.Kind != Gauge && raw < 0:
		return 0, false
	}
	return f.scale.of(raw), true
}

// parseFields reads the table. Its first line names the columns.
func parseFields(text string) ([]*Field, error) {
	r := csv.NewReader(strings.NewReader(text))
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("fields.csv: %w", err)
	}
	const columns = "id,type,names,kind,name,reason,scale,smi,smi_scale,help"
	if len(rows) == 0 || strings.Join(rows[0], ",") != columns {
		return nil, fmt.Errorf("fields.csv:1: want the columns %s", columns)
	}
	fields := make([]*Field, 0, len(rows)-1)
	for i, row := range rows[1:] {
		f, err := parseField(row)
		if err != nil {
			return nil, fmt.Errorf("fields.csv:%d: %w", i+2, err)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

func parseField(row []string) (*Field, error) {
	id, err := strconv.ParseUint(row[0], 10, 16)
	if err != nil {
		return nil, fmt.Errorf("id: want a number below 65536, got %q", row[0])
	}
	f := &Field{
		ID: uint16(id), Float: row[1] == "d", Names: alternatives(row[2]), Kind: Kind(row[3]),
		Name: row[4], Reason: row[5], smi: alternatives(row[7]), Help: row[9],
	}
	if row[1] != "d" && row[1] != "i" {
		return nil, fmt.Errorf("type: want i or d, got %q", row[1])
	}
	if f.Kind != Gauge && f.Kind != Counter && f.Kind != Bits {
		return nil, fmt.Errorf("kind: want gauge, counter or bits, got %q", row[3])
	}
	if f.scale, err = parseScale(row[6]); err != nil {
		return nil, fmt.Errorf("scale: %w", err)
	}
	if f.smiScale, err = parseScale(row[8]); err != nil {
		return nil, fmt.Errorf("smi_scale: %w", err)
	}
	return f, nil
}

// parseScale reads "*1000000", "/1000" or nothing, for 1.
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

// alternatives splits a cell with one value or several.
func alternatives(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ";")
}
