//go:build dcgm && linux && (amd64 || arm64)

package dcgm

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/ebitengine/purego"
)

// dcgmLibrary is the file name in every DCGM 4. The structs of DCGM 3 differ, so its library is no fallback.
const dcgmLibrary = "libdcgm.so.4"

// A library is libdcgm.so.4 loaded in this process. It is never unloaded: its threads may still run and would crash the
// process.
type library struct {
	mu    sync.Mutex
	users int // sources between their first Read and their Close

	start            func() int32
	stop             func() int32
	connectV2        func(address string, p *connectV2Params, handle *uintptr) int32
	connectV3        func(address string, p *connectV3Params, handle *uintptr) int32 // nil before DCGM 4.5.0
	disconnect       func(handle uintptr) int32
	supportedDevices func(handle uintptr, ids *[maxDevices]uint32, n *int32) int32
	attributes       func(handle uintptr, gpu uint32, a *deviceAttributes) int32
	hierarchy        func(handle uintptr, h *migHierarchy) int32
	groupCreate      func(handle uintptr, kind uint32, name string, group *uintptr) int32
	groupAddEntity   func(handle, group uintptr, entityGroup, entity uint32) int32
	groupDestroy     func(handle, group uintptr) int32
	fieldsCreate     func(handle uintptr, n int32, ids *uint16, name string, group *uintptr) int32
	fieldsDestroy    func(handle, group uintptr) int32
	watch            func(handle, group, fields uintptr, periodMicroseconds int64, keepSeconds float64, samples int32) int32
	update           func(handle uintptr, wait int32) int32
	latest           func(handle uintptr, entities *entityPair, n uint32, ids *uint16, m, flags uint32, values *fieldValue) int32
	engineVersion    func(handle uintptr, v *versionInfo) int32
	ownVersion       func(v *versionInfo) int32
	errorString      func(code int32) string
}

// loaded holds the libraries of this process, only one outside tests.
var loaded = struct {
	sync.Mutex
	byName map[string]*library
}{byName: map[string]*library{}}

// load returns the library, loaded from the system's default directories or LD_LIBRARY_PATH.
func load(name string) (*library, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if l := loaded.byName[name]; l != nil {
		return l, nil
	}
	// The dynamic linker keeps its last error per thread, and purego reads it in a second call.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	file, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("want %s of DCGM 4: %w", dcgmLibrary, err)
	}
	l := &library{}
	for _, f := range []struct {
		name     string
		function any
		optional bool
	}{
		{"dcgmInit", &l.start, false},
		{"dcgmShutdown", &l.stop, false},
		{"dcgmConnect_v2", &l.connectV2, false},
		{"dcgmConnect_v3", &l.connectV3, true},
		{"dcgmDisconnect", &l.disconnect, false},
		{"dcgmGetAllSupportedDevices", &l.supportedDevices, false},
		{"dcgmGetDeviceAttributes", &l.attributes, false},
		{"dcgmGetGpuInstanceHierarchy", &l.hierarchy, false},
		{"dcgmGroupCreate", &l.groupCreate, false},
		{"dcgmGroupAddEntity", &l.groupAddEntity, false},
		{"dcgmGroupDestroy", &l.groupDestroy, false},
		{"dcgmFieldGroupCreate", &l.fieldsCreate, false},
		{"dcgmFieldGroupDestroy", &l.fieldsDestroy, false},
		{"dcgmWatchFields", &l.watch, false},
		{"dcgmUpdateAllFields", &l.update, false},
		{"dcgmEntitiesGetLatestValues", &l.latest, false},
		{"dcgmHostengineVersionInfo", &l.engineVersion, false},
		{"dcgmVersionInfo", &l.ownVersion, false},
		{"errorString", &l.errorString, false},
	} {
		address, err := purego.Dlsym(file, f.name)
		if err == nil {
			purego.RegisterFunc(f.function, address)
		} else if !f.optional {
			return nil, fmt.Errorf("want %s of DCGM 4, got one without %s: %w", dcgmLibrary, f.name, err)
		}
	}
	loaded.byName[name] = l
	return l, nil
}

// A dcgmError is the failure of a call into libdcgm.
type dcgmError struct {
	call string
	code int32
	text string
}

func (e *dcgmError) Error() string {
	return fmt.Sprintf("%s: %s (%d)", e.call, e.text, e.code)
}

// has reports whether err is a dcgmError with one of the codes.
func has(err error, codes ...int32) bool {
	var e *dcgmError
	return errors.As(err, &e) && slices.Contains(codes, e.code)
}

// dead reports whether err means that the connection is lost.
func dead(err error) bool { return has(err, stUninitialized, stTimeout, stConnectionNotValid) }
