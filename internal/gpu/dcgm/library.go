//go:build dcgm && linux && (amd64 || arm64)

package dcgm

import (
	"errors"
	"fmt"
	"reflect"
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

	functions
}

// The functions of the library that replayd calls. The tag c is the name of the C function.
type functions struct {
	Start            func() int32                                                                  `c:"dcgmInit"`
	Stop             func() int32                                                                  `c:"dcgmShutdown"`
	ConnectV2        func(address string, p *connectV2Params, handle *uintptr) int32               `c:"dcgmConnect_v2"`
	ConnectV3        func(address string, p *connectV3Params, handle *uintptr) int32               `c:"dcgmConnect_v3"` // nil before DCGM 4.5.0
	Disconnect       func(handle uintptr) int32                                                    `c:"dcgmDisconnect"`
	SupportedDevices func(handle uintptr, ids *[maxDevices]uint32, n *int32) int32                 `c:"dcgmGetAllSupportedDevices"`
	Attributes       func(handle uintptr, gpu uint32, a *deviceAttributes) int32                   `c:"dcgmGetDeviceAttributes"`
	Hierarchy        func(handle uintptr, h *migHierarchy) int32                                   `c:"dcgmGetGpuInstanceHierarchy"`
	GroupCreate      func(handle uintptr, kind uint32, name string, group *uintptr) int32          `c:"dcgmGroupCreate"`
	GroupAddEntity   func(handle, group uintptr, entityGroup, entity uint32) int32                 `c:"dcgmGroupAddEntity"`
	GroupDestroy     func(handle, group uintptr) int32                                             `c:"dcgmGroupDestroy"`
	FieldsCreate     func(handle uintptr, n int32, ids *uint16, name string, group *uintptr) int32 `c:"dcgmFieldGroupCreate"`
	FieldsDestroy    func(handle, group uintptr) int32                                             `c:"dcgmFieldGroupDestroy"`
	Update           func(handle uintptr, wait int32) int32                                        `c:"dcgmUpdateAllFields"`
	EngineVersion    func(handle uintptr, v *versionInfo) int32                                    `c:"dcgmHostengineVersionInfo"`
	OwnVersion       func(v *versionInfo) int32                                                    `c:"dcgmVersionInfo"`
	ErrorString      func(code int32) string                                                       `c:"errorString"`

	Watch  func(handle, group, fields uintptr, periodMicroseconds int64, keepSeconds float64, samples int32) int32      `c:"dcgmWatchFields"`
	Latest func(handle uintptr, entities *entityPair, n uint32, ids *uint16, m, flags uint32, values *fieldValue) int32 `c:"dcgmEntitiesGetLatestValues"`
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
	for field, function := range reflect.ValueOf(&l.functions).Elem().Fields() {
		symbol := field.Tag.Get("c")
		address, err := purego.Dlsym(file, symbol)
		if err == nil {
			purego.RegisterFunc(function.Addr().Interface(), address)
		} else if symbol != "dcgmConnect_v3" {
			return nil, fmt.Errorf("want %s of DCGM 4, got one without %s: %w", dcgmLibrary, symbol, err)
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
