package dcgm

import (
	"bytes"
	"encoding/binary"
	"math"
	"unsafe"

	"replayd/internal/gpu"
	"replayd/internal/secret"
)

// The structs and constants of libdcgm.so.4, laid out as in dcgm_structs.h and dcgm_fields.h of NVIDIA/DCGM 4.6.0
// (72fa3fe) under LP64. The tag c is the name of the C member; a test compares each offset and size with
// testdata/abi.csv, which is compiled from those headers.

// An entityPair (dcgmGroupEntityPair_t) identifies a GPU or a MIG instance.
type entityPair struct {
	Group uint32 `c:"entityGroupId"`
	ID    uint32 `c:"entityId"`
}

// A fieldValue (dcgmFieldValue_v2) is the value of one field of one entity.
type fieldValue struct {
	Version   uint32              `c:"version"`
	Group     uint32              `c:"entityGroupId"`
	ID        uint32              `c:"entityId"`
	FieldID   uint16              `c:"fieldId"`
	FieldType uint16              `c:"fieldType"` // typeDouble, typeInt64, typeString
	Status    int32               `c:"status"`
	Unused    uint32              `c:"unused"`
	TS        int64               `c:"ts"`    // sample time in microseconds since 1970
	Value     [maxBlobLength]byte `c:"value"` // a union
}

func (v *fieldValue) int64() int64 { return int64(binary.NativeEndian.Uint64(v.Value[:])) }

func (v *fieldValue) double() float64 {
	return math.Float64frombits(binary.NativeEndian.Uint64(v.Value[:]))
}

func (v *fieldValue) text() secret.Text { return text(v.Value[:maxStrLength]) }

// connectV2Params (dcgmConnectV2Params_v2) and connectV3Params (dcgmConnectV3Params_v1) hold the connection options.
type connectV2Params struct {
	Version             uint32 `c:"version"`
	Persist             uint32 `c:"persistAfterDisconnect"`
	TimeoutMilliseconds uint32 `c:"timeoutMs"`
	UnixSocket          uint32 `c:"addressIsUnixSocket"`
}

type connectV3Params struct {
	Version             uint32 `c:"version"`
	Persist             uint32 `c:"persistAfterDisconnect"`
	TimeoutMilliseconds uint32 `c:"timeoutMs"`
}

// deviceAttributes (dcgmDeviceAttributes_v3) describes a GPU.
type deviceAttributes struct {
	Version     uint32            `c:"version"`
	ClockSets   [3080]byte        `c:"clockSets"`
	Thermals    [12]byte          `c:"thermalSettings"`
	PowerLimits [24]byte          `c:"powerLimits"`
	Identifiers deviceIdentifiers `c:"identifiers"`
	Memory      [20]byte          `c:"memoryUsage"`
	Settings    [16]byte          `c:"settings"`
}

// deviceIdentifiers is dcgmDeviceIdentifiers_v1.
type deviceIdentifiers struct {
	Version             uint32             `c:"version"`
	BrandName           [maxStrLength]byte `c:"brandName"`
	DeviceName          [maxStrLength]byte `c:"deviceName"`
	PCIBusID            [maxStrLength]byte `c:"pciBusId"`
	Serial              [maxStrLength]byte `c:"serial"`
	UUID                [maxStrLength]byte `c:"uuid"`
	VBIOS               [maxStrLength]byte `c:"vbios"`
	InforomImageVersion [maxStrLength]byte `c:"inforomImageVersion"`
	PCIDeviceID         uint32             `c:"pciDeviceId"`
	PCISubSystemID      uint32             `c:"pciSubSystemId"`
	DriverVersion       [maxStrLength]byte `c:"driverVersion"`
	VirtualizationMode  uint32             `c:"virtualizationMode"`
}

// A migHierarchy (dcgmMigHierarchy_v2) lists the MIG instances of all GPUs.
type migHierarchy struct {
	Version  uint32                             `c:"version"`
	Count    uint32                             `c:"count"`
	Entities [maxHierarchyInfo]migHierarchyInfo `c:"entityList"`
}

// A migHierarchyInfo (dcgmMigHierarchyInfo_v2) is an instance with its parent, a GPU or an instance.
type migHierarchyInfo struct {
	Entity entityPair    `c:"entity"`
	Parent entityPair    `c:"parent"`
	Info   migEntityInfo `c:"info"`
}

// A migEntityInfo is dcgmMigEntityInfo_t.
type migEntityInfo struct {
	GPUUUID           [128]byte `c:"gpuUuid"`
	GPUIndex          uint32    `c:"nvmlGpuIndex"`
	InstanceID        uint32    `c:"nvmlInstanceId"`
	ComputeInstanceID uint32    `c:"nvmlComputeInstanceId"`
	ProfileID         uint32    `c:"nvmlMigProfileId"`
	ProfileSlices     uint32    `c:"nvmlProfileSlices"`
}

// A versionInfo (dcgmVersionInfo_v2) is the version of the library or of nv-hostengine.
type versionInfo struct {
	Version   uint32                 `c:"version"`
	BuildInfo [2 * maxStrLength]byte `c:"rawBuildInfoString"` // "version:4.6.0;arch:x86_64;…"
}

// Each struct carries a version: its size and a version number. libdcgm answers a wrong version with stVersionMismatch.
const (
	versionFieldValue       = uint32(unsafe.Sizeof(fieldValue{})) | 2<<24
	versionConnectV2Params  = uint32(unsafe.Sizeof(connectV2Params{})) | 2<<24
	versionConnectV3Params  = uint32(unsafe.Sizeof(connectV3Params{})) | 1<<24
	versionDeviceAttributes = uint32(unsafe.Sizeof(deviceAttributes{})) | 3<<24
	versionMigHierarchy     = uint32(unsafe.Sizeof(migHierarchy{})) | 2<<24
	versionVersionInfo      = uint32(unsafe.Sizeof(versionInfo{})) | 2<<24
)

// The return codes that replayd distinguishes (dcgmReturn_t); errorString has a text for all codes.
const (
	stOK                    = 0
	stBadParam              = -1
	stGenericError          = -3
	stUninitialized         = -10
	stTimeout               = -11
	stVersionMismatch       = -12
	stUnknownField          = -13
	stFunctionNotFound      = -20
	stConnectionNotValid    = -21
	stMaxLimit              = -24
	stDuplicateKey          = -26
	stModuleNotLoaded       = -33
	stProfilingNotSupported = -36
	stProfilingLibraryError = -37
	stProfilingMultiPass    = -38
)

const (
	entityGPU         = 1 // DCGM_FE_GPU
	entityGPUInstance = 4 // DCGM_FE_GPU_I
	groupEmpty        = 1 // DCGM_GROUP_EMPTY: entities are added one by one
	flagLive          = 1 // DCGM_FV_FLAG_LIVE_DATA: read from the driver, not from the cache

	typeDouble = 'd'
	typeInt64  = 'i'
	typeString = 's'

	maxDevices              = 32
	maxStrLength            = 256
	maxBlobLength           = 4096
	maxGroupFields          = 128
	maxGroupEntities        = 1024
	maxHierarchyInfo        = 448
	blankPrefix             = "<<<"           // prefix of DCGM_STR_BLANK and similar strings
	fieldName        uint16 = 50              // DCGM_FI_DEV_NAME; for a MIG instance its profile, as dcgm-exporter reads it
	fieldXID         uint16 = 230             // DCGM_FI_DEV_XID_ERRORS
	profilingPrefix         = "DCGM_FI_PROF_" // prefix of the profiling module's field names
)

// text returns a C string up to its NUL, or "" if DCGM reports no value.
func text(b []byte) secret.Text {
	b, _, _ = bytes.Cut(b, []byte{0})
	if bytes.HasPrefix(b, []byte(blankPrefix)) {
		return ""
	}
	return gpu.Label(string(b))
}
