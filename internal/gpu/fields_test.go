package gpu

import (
	"math"
	"slices"
	"strings"
	"testing"

	"replayd/internal/scrape"
	"replayd/internal/secret"
)

// dcgmFields lists DCGM's field ids, types ('i' int64, 'd' double) and names before 4.6 and in 4.6, from NVIDIA/DCGM
// v4.6.0 (dcgmlib/dcgm_fields.h, dcgmlib/src/dcgm_fields.cpp at 72fa3fe).
const dcgmFields = `
100 i DCGM_FI_DEV_SM_CLOCK
101 i DCGM_FI_DEV_MEM_CLOCK
112 i DCGM_FI_DEV_CLOCK_THROTTLE_REASONS DCGM_FI_DEV_CLOCKS_EVENT_REASONS
140 i DCGM_FI_DEV_MEMORY_TEMP DCGM_FI_DEV_MEMORY_TEMP_CELSIUS
150 i DCGM_FI_DEV_GPU_TEMP DCGM_FI_DEV_GPU_TEMP_CELSIUS
155 d DCGM_FI_DEV_POWER_USAGE DCGM_FI_DEV_BOARD_POWER_WATTS
156 i DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION
157 d DCGM_FI_DEV_POWER_USAGE_INSTANT DCGM_FI_DEV_BOARD_POWER_RAW_WATTS
160 d DCGM_FI_DEV_POWER_MGMT_LIMIT DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS
164 d DCGM_FI_DEV_ENFORCED_POWER_LIMIT DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS
202 i DCGM_FI_DEV_PCIE_REPLAY_COUNTER DCGM_FI_DEV_PCIE_REPLAY_TOTAL
203 i DCGM_FI_DEV_GPU_UTIL DCGM_FI_DEV_GPU_UTIL_RATIO
204 i DCGM_FI_DEV_MEM_COPY_UTIL
230 i DCGM_FI_DEV_XID_ERRORS DCGM_FI_DEV_XID_ERROR
240 i DCGM_FI_DEV_POWER_VIOLATION
241 i DCGM_FI_DEV_THERMAL_VIOLATION
242 i DCGM_FI_DEV_SYNC_BOOST_VIOLATION
243 i DCGM_FI_DEV_BOARD_LIMIT_VIOLATION
244 i DCGM_FI_DEV_LOW_UTIL_VIOLATION
245 i DCGM_FI_DEV_RELIABILITY_VIOLATION
250 i DCGM_FI_DEV_FB_TOTAL
251 i DCGM_FI_DEV_FB_FREE
252 i DCGM_FI_DEV_FB_USED
253 i DCGM_FI_DEV_FB_RESERVED
254 d DCGM_FI_DEV_FB_USED_PERCENT DCGM_FI_DEV_FB_USED_RATIO
300 i DCGM_FI_DEV_ECC_CURRENT DCGM_FI_DEV_ECC_MODE
310 i DCGM_FI_DEV_ECC_SBE_VOL_TOTAL
311 i DCGM_FI_DEV_ECC_DBE_VOL_TOTAL
312 i DCGM_FI_DEV_ECC_SBE_AGG_TOTAL
313 i DCGM_FI_DEV_ECC_DBE_AGG_TOTAL
393 i DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL
394 i DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL
395 i DCGM_FI_DEV_ROW_REMAP_FAILURE DCGM_FI_DEV_ROW_REMAP_FAILED
396 i DCGM_FI_DEV_ROW_REMAP_PENDING
1001 d DCGM_FI_PROF_GR_ENGINE_ACTIVE DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO
1002 d DCGM_FI_PROF_SM_ACTIVE DCGM_FI_PROF_SM_UTIL_RATIO
1003 d DCGM_FI_PROF_SM_OCCUPANCY DCGM_FI_PROF_SM_OCCUPANCY_RATIO
1004 d DCGM_FI_PROF_PIPE_TENSOR_ACTIVE DCGM_FI_PROF_TENSOR_UTIL_RATIO
1005 d DCGM_FI_PROF_DRAM_ACTIVE DCGM_FI_PROF_DRAM_UTIL_RATIO
1006 d DCGM_FI_PROF_PIPE_FP64_ACTIVE DCGM_FI_PROF_FP64_UTIL_RATIO
1007 d DCGM_FI_PROF_PIPE_FP32_ACTIVE DCGM_FI_PROF_FP32_UTIL_RATIO
1008 d DCGM_FI_PROF_PIPE_FP16_ACTIVE DCGM_FI_PROF_FP16_UTIL_RATIO
1009 i DCGM_FI_PROF_PCIE_TX_BYTES
1010 i DCGM_FI_PROF_PCIE_RX_BYTES
1011 i DCGM_FI_PROF_NVLINK_TX_BYTES
1012 i DCGM_FI_PROF_NVLINK_RX_BYTES
1091 i DCGM_FI_PROF_PCIE_TX_BYTES_TOTAL
1092 i DCGM_FI_PROF_PCIE_RX_BYTES_TOTAL
1201 i DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES DCGM_FI_DEV_NVLINK_TX_BYTES_TOTAL
1203 i DCGM_FI_DEV_NVLINK_COUNT_RX_BYTES DCGM_FI_DEV_NVLINK_RX_BYTES_TOTAL
1420 i DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS
1421 i DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS
1422 i DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS
1423 i DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS
1424 i DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS
`

// fieldOf returns the field with a DCGM field id; nil: the vocabulary does not have it.
func fieldOf(id uint16) *Field {
	for _, f := range fields {
		if f.ID == id {
			return f
		}
	}
	return nil
}

func TestFieldsAreDCGMs(t *testing.T) {
	if errFields != nil {
		t.Fatal(errFields)
	}
	var got strings.Builder
	for _, f := range Fields() {
		kind := "i"
		if f.Float {
			kind = "d"
		}
		got.WriteString(strings.Join(append([]string{itoa(f.ID), kind}, f.Names...), " ") + "\n")
		if fieldOf(f.ID) != f {
			t.Errorf("fieldOf(%d) is another field", f.ID)
		}
	}
	if want := strings.TrimPrefix(dcgmFields, "\n"); got.String() != want {
		t.Errorf("fields.csv has\n%s\nwant\n%s", got.String(), want)
	}
	if f := fieldOf(1); f != nil {
		t.Errorf("fieldOf(1) = %v, want none", f)
	}
}

// TestFieldsAreNamedByUnit checks each name against its unit and the unit against the scale.
func TestFieldsAreNamedByUnit(t *testing.T) {
	one, mega, mebi, percent := scale{1, 1}, scale{1e6, 1}, scale{1 << 20, 1}, scale{1, 100}
	units := []struct {
		suffix string
		kind   scrape.Kind
		scales []scale
	}{
		{"_bytes_per_second", scrape.Gauge, []scale{one}},
		{"_bytes_total", scrape.Counter, []scale{one}},
		{"_joules_total", scrape.Counter, []scale{{1, 1e3}}},
		{"_seconds_total", scrape.Counter, []scale{{1, 1e9}}},
		{"_total", scrape.Counter, []scale{one}},
		{"_hertz", scrape.Gauge, []scale{mega}},
		{"_celsius", scrape.Gauge, []scale{one}},
		{"_watts", scrape.Gauge, []scale{one}},
		{"_bytes", scrape.Gauge, []scale{mebi}},
		{"_ratio", scrape.Gauge, []scale{one, percent}},
		{"_reason", Bits, []scale{one}},
		{"_xid", scrape.Gauge, []scale{one}},
		{"_enabled", scrape.Gauge, []scale{one}},
		{"_failed", scrape.Gauge, []scale{one}},
		{"_pending", scrape.Gauge, []scale{one}},
	}
	series, pages, queries := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range Fields() {
		i := slices.IndexFunc(units, func(u struct {
			suffix string
			kind   scrape.Kind
			scales []scale
		},
		) bool {
			return strings.HasSuffix(f.Name, u.suffix)
		})
		switch {
		case i < 0:
			t.Errorf("%s ends in no unit", f.Name)
		case f.Kind != units[i].kind:
			t.Errorf("%s is a %s, want a %s", f.Name, f.Kind, units[i].kind)
		case !slices.Contains(units[i].scales, f.scale):
			t.Errorf("%s has the scale %v, want one of %v", f.Name, f.scale, units[i].scales)
		}
		// nvidia-smi and DCGM use the same units except for times.
		if len(f.smi) > 0 && f.smiScale != f.scale && f.smiScale != (scale{1, 1e6}) {
			t.Errorf("%s has nvidia-smi's scale %v, DCGM's is %v", f.Name, f.smiScale, f.scale)
		}
		if f.Help == "" || !strings.HasSuffix(f.Help, ".") {
			t.Errorf("%s: help %q is no sentence", f.Name, f.Help)
		}
		for seen, names := range map[*map[string]bool][]string{&series: {f.Name + "/" + f.Reason}, &pages: f.Names, &queries: f.smi} {
			for _, n := range names {
				if (*seen)[n] {
					t.Errorf("%s is there twice", n)
				}
				(*seen)[n] = true
			}
		}
	}
}

// valueOf returns the value that a reading keeps, and why it keeps none.
func valueOf(id uint16, raw float64) (v float64, ok bool, why secret.Text) {
	d, r := Device{Index: "0", Values: map[*Field]float64{}}, Reading{}
	r.Add(&d, fieldOf(id), fieldOf(id).Names[0], raw)
	v, ok = d.Values[fieldOf(id)]
	return v, ok, r.first
}

func TestValueIsScaledExactly(t *testing.T) {
	f := func(id uint16, raw, want float64) {
		t.Helper()
		if got, ok, _ := valueOf(id, raw); !ok || got != want {
			t.Errorf("%s of %v = %v, %v, want %v", fieldOf(id).Name, raw, got, ok, want)
		}
	}
	f(156, 123, 0.123)
	f(156, 319159391, 319159.391)
	f(203, 7, 0.07)
	f(203, 29, 0.29) // 29 × 0.01 is 0.29000000000000004
	f(252, 81559, 81559*1024*1024)
	f(100, 1980, 1.98e9)
	f(240, 1500000000, 1.5)
	f(1203, 9e14, 9e14) // above the sentinel of doubles, but a valid int64
	f(150, -5, -5)
	f(112, 0x105, 0x105)
}

func TestSentinelsAreNoValue(t *testing.T) {
	f := func(id uint16, raw float64) {
		t.Helper()
		if v, ok, why := valueOf(id, raw); ok || why != "" {
			t.Errorf("%s of %v = %v, left out: %s, want no value", fieldOf(id).Name, raw, v, why)
		}
	}
	for i := 0.0; i < 4; i++ { // blank, not found, not supported, not permitted
		f(140, 9223372036854775792+i)
		f(140, 0x7ffffff0+i)
		f(155, 140737488355328+i)
		f(1002, 140737488355328+i)
	}
	f(155, 9223372036854775794)
	f(156, math.NaN())
}

// A value that its figure cannot have is none, and is told: a driver's -1 in 32 bits, as in NVIDIA/DCGM#199 and
// NVIDIA/dcgm-exporter#418, and whatever else is out of its range.
func TestImpossibleValuesAreNone(t *testing.T) {
	for _, f := range Fields() {
		most := f.most / f.scale.of(1)
		for _, raw := range []float64{unsigned, most * 1.02, f.least/f.scale.of(1) - 1, math.Inf(1), math.Inf(-1), 1<<64 - 1} {
			if v, ok, why := valueOf(f.ID, raw); ok || why == "" {
				t.Errorf("%s of %v = %v, left out: %q, want no value and the reason", f.Name, raw, v, why)
			}
		}
		for _, raw := range []float64{f.least / f.scale.of(1), most, most * 1.005} {
			if v, ok, why := valueOf(f.ID, raw); !ok || v > f.most || why != "" {
				t.Errorf("%s of %v = %v, left out: %q, want a value", f.Name, raw, v, why)
			}
		}
	}
	for raw, want := range map[float64]secret.Text{
		unsigned: "DCGM_FI_DEV_GPU_UTIL of GPU 0 : want 0 to 100, got 4294967295",
		12345:    "DCGM_FI_DEV_GPU_UTIL of GPU 0 : want 0 to 100, got 12345",
	} {
		if _, _, why := valueOf(203, raw); why != want {
			t.Errorf("%v is left out: %q, want %q", raw, why, want)
		}
	}
}

func TestTableWithFaults(t *testing.T) {
	const head = "id,type,names,kind,name,reason,scale,smi,smi_scale,others,range,help\n"
	f := func(table, want string) {
		t.Helper()
		if _, err := parseFields(table); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	f("", "fields.csv:1: want the columns id,type,names,kind,name,reason,scale,smi,smi_scale,others,range,help")
	f(head+"x,i,N,gauge,n,,,,,,0 to 1,h\n", `fields.csv:2: id: want a number below 65536, got "x"`)
	f(head+"1,f,N,gauge,n,,,,,,0 to 1,h\n", `fields.csv:2: type: want i or d, got "f"`)
	f(head+"1,i,N,gouge,n,,,,,,0 to 1,h\n", `fields.csv:2: kind: want gauge, counter or bits, got "gouge"`)
	f(head+"1,i,N,gauge,n,,0.001,,,,0 to 1,h\n", `fields.csv:2: scale: want * or / and an integer ≥ 1, or nothing, got "0.001"`)
	f(head+"1,i,N,gauge,n,,/0,,,,0 to 1,h\n", `fields.csv:2: scale: want * or / and an integer ≥ 1, or nothing, got "/0"`)
	f(head+"1,i,N,gauge,n,,,s,*,,0 to 1,h\n", `fields.csv:2: smi_scale: want * or / and an integer ≥ 1, or nothing, got "*"`)
	f(head+"1,i,N,gauge,n,,,,,o/x,0 to 1,h\n", `fields.csv:2: others: want * or / and an integer ≥ 1, or nothing, got "/x"`)
	f(head+"1,i,N,gauge,n,,,,,,1..2,h\n", `fields.csv:2: range: want two numbers like 0 to 1, got "1..2"`)
	f(head+"1,i\n", "fields.csv: record on line 2: wrong number of fields")
}
