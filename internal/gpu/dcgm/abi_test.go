package dcgm

import (
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"replayd/internal/gpu"
)

// An abiRow is a line of testdata/abi.csv.
type abiRow struct {
	kind, name, member  string
	offset, size        uint64
	ctype, value, notes string
}

func abiRows(t *testing.T) []abiRow {
	t.Helper()
	file, err := os.Open("testdata/abi.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []abiRow
	for _, l := range lines[1:] {
		r := abiRow{kind: l[0], name: l[1], member: l[2], ctype: l[5], value: l[6], notes: l[7]}
		r.offset, _ = strconv.ParseUint(l[3], 10, 64)
		r.size, _ = strconv.ParseUint(l[4], 10, 64)
		rows = append(rows, r)
	}
	return rows
}

var abiStructs = map[string]reflect.Type{
	"dcgmGroupEntityPair_t":    reflect.TypeFor[entityPair](),
	"dcgmFieldValue_v2":        reflect.TypeFor[fieldValue](),
	"dcgmConnectV2Params_v2":   reflect.TypeFor[connectV2Params](),
	"dcgmConnectV3Params_v1":   reflect.TypeFor[connectV3Params](),
	"dcgmDeviceAttributes_v3":  reflect.TypeFor[deviceAttributes](),
	"dcgmDeviceIdentifiers_v1": reflect.TypeFor[deviceIdentifiers](),
	"dcgmMigHierarchy_v2":      reflect.TypeFor[migHierarchy](),
	"dcgmMigHierarchyInfo_v2":  reflect.TypeFor[migHierarchyInfo](),
	"dcgmMigEntityInfo_t":      reflect.TypeFor[migEntityInfo](),
	"dcgmVersionInfo_v2":       reflect.TypeFor[versionInfo](),
}

var abiNumbers = map[string]int64{
	"dcgmFieldValue_version2":       int64(versionFieldValue),
	"dcgmConnectV2Params_version2":  int64(versionConnectV2Params),
	"dcgmConnectV3Params_version1":  int64(versionConnectV3Params),
	"dcgmDeviceAttributes_version3": int64(versionDeviceAttributes),
	"dcgmMigHierarchy_version2":     int64(versionMigHierarchy),
	"dcgmVersionInfo_version2":      int64(versionVersionInfo),

	"DCGM_ST_OK":                      stOK,
	"DCGM_ST_BADPARAM":                stBadParam,
	"DCGM_ST_GENERIC_ERROR":           stGenericError,
	"DCGM_ST_UNINITIALIZED":           stUninitialized,
	"DCGM_ST_TIMEOUT":                 stTimeout,
	"DCGM_ST_VER_MISMATCH":            stVersionMismatch,
	"DCGM_ST_UNKNOWN_FIELD":           stUnknownField,
	"DCGM_ST_FUNCTION_NOT_FOUND":      stFunctionNotFound,
	"DCGM_ST_CONNECTION_NOT_VALID":    stConnectionNotValid,
	"DCGM_ST_MAX_LIMIT":               stMaxLimit,
	"DCGM_ST_DUPLICATE_KEY":           stDuplicateKey,
	"DCGM_ST_MODULE_NOT_LOADED":       stModuleNotLoaded,
	"DCGM_ST_PROFILING_NOT_SUPPORTED": stProfilingNotSupported,
	"DCGM_ST_PROFILING_LIBRARY_ERROR": stProfilingLibraryError,
	"DCGM_ST_PROFILING_MULTI_PASS":    stProfilingMultiPass,

	"DCGM_FE_GPU":                        entityGPU,
	"DCGM_FE_GPU_I":                      entityGPUInstance,
	"DCGM_GROUP_EMPTY":                   groupEmpty,
	"DCGM_FV_FLAG_LIVE_DATA":             flagLive,
	"DCGM_MAX_NUM_DEVICES":               maxDevices,
	"DCGM_MAX_STR_LENGTH":                maxStrLength,
	"DCGM_MAX_BLOB_LENGTH":               maxBlobLength,
	"DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP": maxGroupFields,
	"DCGM_GROUP_MAX_ENTITIES_V2":         maxGroupEntities,
	"DCGM_MAX_HIERARCHY_INFO":            maxHierarchyInfo,
	"DCGM_FT_DOUBLE":                     typeDouble,
	"DCGM_FT_INT64":                      typeInt64,
	"DCGM_FT_STRING":                     typeString,
	"DCGM_INT32_BLANK":                   gpu.BlankInt32,
	"DCGM_INT32_NOT_PERMISSIONED":        gpu.BlankInt32 + gpu.BlankInt32s - 1,
}

// abiTypes maps C argument types to the Go types that the functions in library.go take.
var abiTypes = map[string]reflect.Type{
	"dcgmHandle_t":              reflect.TypeFor[uintptr](),
	"dcgmGpuGrp_t":              reflect.TypeFor[uintptr](),
	"dcgmFieldGrp_t":            reflect.TypeFor[uintptr](),
	"dcgmReturn_t":              reflect.TypeFor[int32](),
	"dcgm_field_entity_group_t": reflect.TypeFor[uint32](),
	"dcgm_field_eid_t":          reflect.TypeFor[uint32](),
	"dcgmGroupType_t":           reflect.TypeFor[uint32](),
}

// TestABI compares testdata/abi.csv with the structs, constants and types in Go; each side must be complete.
func TestABI(t *testing.T) {
	seen := map[string]int{}
	for _, r := range abiRows(t) {
		seen[r.name]++
		t.Run(strings.TrimSuffix(r.name+"."+r.member, "."), func(t *testing.T) {
			switch r.kind {
			case "struct":
				checkStruct(t, r)
			case "member":
				checkMember(t, r)
			case "type":
				if typ := abiTypes[r.name]; typ == nil || uint64(typ.Size()) != r.size {
					t.Errorf("got %v, want one of %d bytes", typ, r.size)
				}
			case "field":
				checkField(t, r)
			default:
				checkNumber(t, r)
			}
		})
	}
	for name, typ := range abiStructs {
		// One row describes the struct itself. The members of a union have the offset of the union.
		if unions := map[string]int{"dcgmFieldValue_v2": 4}[name]; seen[name] != 1+typ.NumField()+unions {
			t.Errorf("%s: want a row for it and each of its %d members, got %d rows", name, typ.NumField(), seen[name])
		}
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(abiNumbers)), slices.Collect(maps.Keys(abiTypes))) {
		if seen[name] != 1 {
			t.Errorf("%s: want one row, got %d", name, seen[name])
		}
	}
	for _, id := range gpu.InstanceFields {
		if fieldOf(id) == nil {
			t.Errorf("field %d of instances is none of the vocabulary", id)
		}
	}
}

func checkStruct(t *testing.T, r abiRow) {
	t.Helper()
	typ := abiStructs[r.name]
	if typ == nil {
		t.Fatal("no such struct here")
	}
	var align int
	if _, err := fmt.Sscanf(r.notes, "align %d", &align); err != nil {
		t.Fatalf("notes: %v", err)
	}
	if uint64(typ.Size()) != r.size || typ.Align() != align {
		t.Errorf("got %d bytes aligned to %d, want %d and %d", typ.Size(), typ.Align(), r.size, align)
	}
}

func checkMember(t *testing.T, r abiRow) {
	t.Helper()
	typ := abiStructs[r.name]
	if typ == nil {
		t.Fatal("no such struct here")
	}
	outer, inner, union := strings.Cut(r.member, ".")
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Tag.Get("c") != outer {
			continue
		}
		if uint64(f.Offset) != r.offset {
			t.Errorf("got offset %d, want %d", f.Offset, r.offset)
		}
		want := uint64(f.Type.Size())
		if union {
			want = map[string]uint64{"i64": 8, "dbl": 8, "str": maxStrLength, "blob": maxBlobLength}[inner]
		}
		if want != r.size {
			t.Errorf("got %d bytes, want %d", want, r.size)
		}
		return
	}
	t.Error("no such member here")
}

func checkNumber(t *testing.T, r abiRow) {
	t.Helper()
	got, ok := abiNumbers[r.name]
	switch {
	case strings.HasPrefix(r.name, "DCGM_STR_"):
		if text([]byte(r.value+"\x00")) != "" {
			t.Errorf("%q is taken for a text", r.value)
		}
	case strings.HasPrefix(r.name, "DCGM_INT64_"):
		n, err := strconv.ParseInt(r.value, 10, 64)
		if err != nil || float64(n) < gpu.BlankInt64 {
			t.Errorf("got %v for the least blank, want %s or less", gpu.BlankInt64, r.value)
		}
	case strings.HasPrefix(r.name, "DCGM_FP64_"):
		if v, err := strconv.ParseFloat(r.value, 64); err != nil || v != gpu.BlankFloat {
			t.Errorf("got %v for the least blank, want %s", gpu.BlankFloat, r.value)
		}
	case !ok:
		t.Error("no such number here")
	default:
		value := r.value
		if r.ctype == "char" {
			value, _, _ = strings.Cut(r.value, " ")
		}
		if want, err := strconv.ParseInt(value, 10, 64); err != nil || got != want {
			t.Errorf("got %d, want %s", got, r.value)
		}
	}
}

// checkField compares a field in Go and in fields.csv with the table.
func checkField(t *testing.T, r abiRow) {
	t.Helper()
	id, err := strconv.ParseUint(r.value, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	f := fieldOf(uint16(id))
	if f == nil {
		return // the vocabulary does not have every field
	}
	if f.Float != (r.ctype == "d") {
		t.Errorf("got a double: %t, want type %s", f.Float, r.ctype)
	}
	if profiling(f) != strings.HasPrefix(r.name, "DCGM_FI_PROF_") {
		t.Errorf("got a profiling field: %t", profiling(f))
	}
	below := strings.Contains(r.notes, "level DCGM_FE_GPU_I") || strings.Contains(r.notes, "level DCGM_FE_GPU_CI")
	if got := slices.Contains(gpu.InstanceFields, f.ID); got != below {
		t.Errorf("got a field of instances: %t, want %t", got, below)
	}
}

func TestFieldValue(t *testing.T) {
	var v fieldValue
	binary.NativeEndian.PutUint64(v.Value[:], 0xfffffffffffffffe)
	if got := v.int64(); got != -2 {
		t.Errorf("int64: got %d, want -2", got)
	}
	binary.NativeEndian.PutUint64(v.Value[:], math.Float64bits(0.75))
	if got := v.double(); got != 0.75 {
		t.Errorf("double: got %v, want 0.75", got)
	}
	copy(v.Value[:], "1g.10gb\x00rest")
	if got := v.text(); got != "1g.10gb" {
		t.Errorf("text: got %q, want 1g.10gb", got)
	}
	for i := range v.Value {
		v.Value[i] = 'x'
	}
	if got, want := v.text(), gpu.Label(strings.Repeat("x", maxStrLength)); got != want {
		t.Errorf("a text without an end: got %q, want %q", got, want)
	}
}

// fieldOf returns the field with a DCGM field id; nil: the vocabulary does not have it.
func fieldOf(id uint16) *gpu.Field {
	for _, f := range gpu.Fields() {
		if f.ID == id {
			return f
		}
	}
	return nil
}
