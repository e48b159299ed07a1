//go:build dcgm && linux && (amd64 || arm64)

package dcgm

import (
	"fmt"
	"testing"

	"replayd/internal/gpu"
)

// TestDCGMFailures lets each function fail: the error names the function, and the source recovers when the function
// works again.
func TestDCGMFailures(t *testing.T) {
	for _, f := range []struct {
		name string
		goes bool // Read succeeds without this function
	}{
		{name: "dcgmInit"},
		{name: "dcgmConnect_v3"},
		{name: "dcgmGetAllSupportedDevices"},
		{name: "dcgmGetGpuInstanceHierarchy", goes: true},
		{name: "dcgmGetDeviceAttributes", goes: true},
		{name: "dcgmFieldGroupCreate"},
		{name: "dcgmGroupCreate"},
		{name: "dcgmGroupAddEntity"},
		{name: "dcgmWatchFields"},
		{name: "dcgmUpdateAllFields"},
		{name: "dcgmEntitiesGetLatestValues"},
		{name: "dcgmDisconnect", goes: true},
	} {
		for _, code := range []int{-4, -8, -11, -18, -21, -49, -99} {
			t.Run(fmt.Sprint(f.name, code), func(t *testing.T) {
				s := newStub(t)
				s.play(t, fmt.Sprint("fail ", f.name, " ", code))
				d := s.open(t, Options{})
				ends := code == -11 || code == -21 // codes that mean a lost connection for any function
				for range 2 {
					if f.goes && (!ends || f.name == "dcgmDisconnect") {
						for i, dev := range readDCGM(t, d) {
							complete(t, dev, uint32(i), gpu.Fields())
						}
					} else {
						failsDCGM(t, d, "libdcgm: localhost:5555: ", f.name+": ", fmt.Sprintf("(%d)", code))
					}
				}
				s.play(t)
				for i, dev := range readDCGM(t, d) {
					complete(t, dev, uint32(i), gpu.Fields())
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
				if calls := s.calls(t); calls[len(calls)-1] != "dcgmShutdown handles=0 groups=0" {
					t.Errorf("at the end it called %q", calls)
				}
			})
		}
	}
}

func TestDCGMErrorWithoutWords(t *testing.T) {
	s := newStub(t)
	s.play(t, "fail dcgmWatchFields -99")
	d := s.open(t, Options{})
	closeSource(t, d)
	failsDCGM(t, d, "libdcgm: localhost:5555: dcgmWatchFields: a code that the library has no words for (-99)")
}

func TestDCGMEngineStops(t *testing.T) {
	s := newStub(t)
	s.play(t, "down")
	d := s.open(t, Options{})
	closeSource(t, d)
	failsDCGM(t, d, "dcgmConnect_v3: Host engine connection invalid/disconnected (-21)")
	s.play(t)
	readDCGM(t, d)
	s.play(t, "down")
	failsDCGM(t, d, "dcgmEntitiesGetLatestValues: Host engine connection invalid/disconnected (-21)")
	for range 3 {
		failsDCGM(t, d, "dcgmConnect_v3: Host engine connection invalid/disconnected (-21)")
	}
	s.play(t, "gpus 3")
	for i, dev := range readDCGM(t, d) {
		complete(t, dev, uint32(i), gpu.Fields())
	}
	// The engine stops while the profiling fields are requested.
	s.play(t, "life 3", "noprofiling -21")
	failsDCGM(t, d, "(-21)")
	failsDCGM(t, d, "dcgmWatchFields: Host engine connection invalid/disconnected (-21)")
	s.play(t, "life 3")
	readDCGM(t, d)
	logged(t, s)
	// The engine was restarted between two Reads.
	s.play(t, "gpus 1", "life 2")
	failsDCGM(t, d, "dcgmEntitiesGetLatestValues", "(-21)")
	if devices := readDCGM(t, d); len(devices) != 1 {
		t.Errorf("got %d devices, want 1", len(devices))
	}
	if calls := s.calls(t); begins(calls, "dcgmConnect") != 9 || begins(calls, "dcgmDisconnect") != 4 {
		t.Errorf("got the calls %q", calls)
	}
}

// TestDCGMRefused has an engine that refuses the login: the connect call returns 0.
func TestDCGMRefused(t *testing.T) {
	s := newStub(t)
	s.play(t, "refused")
	d := s.open(t, Options{})
	closeSource(t, d)
	for range 10 { // exceeds the stub's limit on connections if they leak
		failsDCGM(t, d, "the engine took the connection and then dropped it, as it does when it refuses a login: dcgmGetAllSupportedDevices: ", "(-21)")
	}
	s.play(t)
	readDCGM(t, d)
}

func TestDCGMVersions(t *testing.T) {
	s := newStub(t)
	d := s.open(t, Options{})
	closeSource(t, d)
	for _, f := range []string{"dcgmEntitiesGetLatestValues -20", "dcgmGetAllSupportedDevices -12"} {
		s.play(t, "versions 4.6.0 4.5.3", "fail "+f)
		failsDCGM(t, d, "libdcgm.so.4 is 4.6.0, nv-hostengine 4.5.3; the library must not be the newer one: "+f[:12])
		s.play(t, "versions 4.6.0 4.5.3", "fail "+f, "fail dcgmHostengineVersionInfo -21")
		failsDCGM(t, d, "libdcgm.so.4 is 4.6.0, nv-hostengine unknown; ")
	}
	s.play(t, "layout 0x03001020")
	failsDCGM(t, d, "want values of version 0x2001020, got 0x3001020")
}
