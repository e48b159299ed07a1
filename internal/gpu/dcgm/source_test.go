//go:build dcgm && linux && (amd64 || arm64)

package dcgm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/internal/gpu"

	"golang.org/x/sys/unix"
)

func TestDCGMTwoGPUs(t *testing.T) {
	s := newStub(t)
	d := s.open(t, Options{Interval: 2 * time.Second})
	devices := readDCGM(t, d)
	if len(devices) != 2 {
		t.Fatalf("got %d devices, want 2", len(devices))
	}
	for i, dev := range devices {
		complete(t, dev, uint32(i), gpu.Fields())
		dev.Values = nil
		want := gpu.Device{Index: gpu.Label(fmt.Sprint(i)), UUID: gpu.Label(uuid(i)), Model: "NVIDIA H100 80GB HBM3", Hostname: gpu.Label(gpu.Hostname())}
		if fmt.Sprint(dev) != fmt.Sprint(want) {
			t.Errorf("got %+v, want %+v", dev, want)
		}
	}
	// Calculated by hand: 10,001 MHz; 15,601 mJ; 25,201 MiB; 142,001 ns; 155/4096 + 1 W.
	for id, want := range map[uint16]float64{100: 10_001e6, 156: 15.601, 252: 25_201 << 20, 1420: 142_001e-9, 155: 1.037841796875} {
		if got := devices[1].Values[fieldOf(id)]; got != want {
			t.Errorf("field %d: got %v, want %v", id, got, want)
		}
	}
	readDCGM(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	var profile int
	for _, f := range gpu.Fields() {
		if profiling(f) {
			profile++
		}
	}
	name := fmt.Sprintf("replayd-%.63s-%d-", gpu.Hostname(), os.Getpid())
	var got []string
	for _, c := range s.calls(t) {
		before, after, _ := strings.Cut(c, name)
		if tag, n, ok := strings.Cut(after, "-"); ok && len(tag) == 8 {
			c = before + n
		}
		got = append(got, c)
	}
	all := len(gpu.Fields())
	want := []string{
		"dcgmInit",
		"dcgmConnect_v3 address=tcp://localhost:5555 timeout=2000 unix=0",
		"dcgmGetAllSupportedDevices",
		"dcgmFieldGroupCreate n=" + fmt.Sprint(all-profile) + " first=100 name=1",
		"dcgmGroupCreate kind=1 name=2", "dcgmGroupAddEntity 1:0", "dcgmGroupAddEntity 1:1",
		fmt.Sprintf("dcgmWatchFields entities=2 fields=%d profiling=0 period=2000000 keep=6 samples=3", all-profile),
		"dcgmFieldGroupCreate n=" + fmt.Sprint(profile) + " first=1001 name=3",
		"dcgmGroupCreate kind=1 name=4", "dcgmGroupAddEntity 1:0", "dcgmGroupAddEntity 1:1",
		fmt.Sprintf("dcgmWatchFields entities=2 fields=%d profiling=%d period=2000000 keep=6 samples=3", profile, profile),
		"dcgmUpdateAllFields wait=1",
		fmt.Sprintf("dcgmEntitiesGetLatestValues entities=2 fields=%d flags=0", all),
		fmt.Sprintf("dcgmEntitiesGetLatestValues entities=2 fields=%d flags=0", all),
		"dcgmDisconnect groups=2 fieldgroups=2",
		"dcgmShutdown handles=0 groups=0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got the calls\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if s.log.Len() > 0 {
		t.Errorf("logged:\n%s", s.log)
	}
}

// DCGM 4.0 to 4.4 have no dcgmConnect_v3.
func TestDCGMOldLibrary(t *testing.T) {
	for address, want := range map[string]string{
		"localhost:5555":            "dcgmConnect_v2 address=localhost:5555 timeout=2000 unix=0",
		"unix:///tmp/nv-hostengine": "dcgmConnect_v2 address=/tmp/nv-hostengine timeout=2000 unix=1",
	} {
		s := newStub(t, "-DNO_CONNECT_V3")
		d := s.open(t, Options{Address: address})
		closeSource(t, d)
		if devices := readDCGM(t, d); len(devices) != 2 {
			t.Errorf("%s: got %d devices, want 2", address, len(devices))
		}
		if calls := s.calls(t); !slices.Contains(calls, want) {
			t.Errorf("%s: got %q, want %s", address, calls, want)
		}
	}
}

// The library and the engine need not exist when the source is created.
func TestDCGMNoLibrary(t *testing.T) {
	s := newStub(t)
	d := s.open(t, Options{})
	closeSource(t, d)
	path := d.name
	d.name = filepath.Join(t.TempDir(), dcgmLibrary)
	failsDCGM(t, d, "libdcgm: localhost:5555: want libdcgm.so.4 of DCGM 4: ", "cannot open shared object file")
	d.name = newStub(t, "-DNO_WATCH_FIELDS").path()
	failsDCGM(t, d, "want libdcgm.so.4 of DCGM 4, got one without dcgmWatchFields: ", "undefined symbol: dcgmWatchFields")
	d.name = path
	if devices := readDCGM(t, d); len(devices) != 2 {
		t.Errorf("got %d devices, want 2", len(devices))
	}
}

// The dynamic linker searches LD_LIBRARY_PATH, which it reads at process start.
func TestDCGMSearch(t *testing.T) {
	if os.Getenv("REPLAYD_TEST_DCGM") != "" {
		source, err := New(Options{Address: "localhost:5555", Interval: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		r, err := source.Read(context.Background())
		if err != nil || len(r.Devices) != 3 {
			t.Errorf("got %d devices, %v, want 3", len(r.Devices), err)
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
		return
	}
	s := newStub(t)
	s.play(t, "gpus 3")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, "-test.run=^TestDCGMSearch$")
	c.Env = append(os.Environ(), "REPLAYD_TEST_DCGM=1", "LD_LIBRARY_PATH="+s.folder)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if calls := s.calls(t); begins(calls, "dcgmEntitiesGetLatestValues") != 1 {
		t.Errorf("got the calls %q", calls)
	}
}

func TestDCGMHang(t *testing.T) {
	for _, hung := range []string{"dcgmInit", "dcgmConnect_v3", "dcgmGetAllSupportedDevices", "dcgmWatchFields", "dcgmEntitiesGetLatestValues"} {
		t.Run(hung, func(t *testing.T) {
			s := newStub(t)
			s.play(t, "hang "+hung)
			d := s.open(t, Options{})
			closeSource(t, d)
			wantsError(t, stuck(d, hung), "localhost:5555: no answer to the call of "+hung+" begun ", " ago: ", context.Canceled.Error())
			before := s.calls(t)
			for range 3 {
				failsDCGM(t, d, "localhost:5555: still waiting for the call of "+hung+" begun ", " ago")
			}
			if after := s.calls(t); after[0] != "" {
				t.Errorf("after %q it called %q", before, after)
			}
			s.play(t)
			<-d.running.done
			if devices := readDCGM(t, d); len(devices) != 2 {
				t.Errorf("got %d devices, want 2", len(devices))
			}
		})
	}
}

// stuck returns the error of a Read whose context ends while the named function hangs.
func stuck(d *dcgmSource, function string) error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for {
			if c := d.doing.Load(); c != nil && c.name == function {
				cancel()
				return
			}
			runtime.Gosched()
		}
	}()
	_, err := d.Read(ctx)
	return err
}

func TestDCGMCloseWhileHung(t *testing.T) {
	s := newStub(t)
	d := s.open(t, Options{})
	readDCGM(t, d)
	s.play(t, "hang dcgmEntitiesGetLatestValues")
	wantsError(t, stuck(d, "dcgmEntitiesGetLatestValues"), "no answer")
	d.patience = 10 * time.Millisecond
	wantsError(t, d.Close(), "localhost:5555: left behind at the end: the call of dcgmEntitiesGetLatestValues begun ")
	s.play(t)
	<-d.running.done
	if calls := s.calls(t); calls[len(calls)-1] != "dcgmShutdown handles=0 groups=0" {
		t.Errorf("once it came back it called %q", calls)
	}
}

func TestDCGMContext(t *testing.T) {
	s := newStub(t)
	d := s.open(t, Options{})
	closeSource(t, d)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := d.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if d.running != nil {
		t.Error("it began to read")
	}
}

// Two sources share one library: the last Close shuts it down.
func TestDCGMTwoSources(t *testing.T) {
	s := newStub(t)
	a, b := s.open(t, Options{}), s.open(t, Options{Address: "unix:///tmp/nv-hostengine"})
	readDCGM(t, a)
	readDCGM(t, b)
	if threads := stubThreads(t); len(threads) != 1 {
		t.Errorf("got the threads %v of the library, want one", threads)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if len(readDCGM(t, b)) != 2 {
		t.Error("the other source has no devices")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	for len(stubThreads(t)) > 0 { // a joined thread stays visible for a moment
		runtime.Gosched()
	}
	if calls := s.calls(t); begins(calls, "dcgmInit") != 1 || begins(calls, "dcgmShutdown") != 1 {
		t.Errorf("got the calls %q", calls)
	}
}

// A signal to the process arrives even if a thread of the library receives it.
func TestDCGMSignals(t *testing.T) {
	s := newStub(t)
	d := s.open(t, Options{})
	closeSource(t, d)
	readDCGM(t, d)
	threads := stubThreads(t)
	if len(threads) != 1 {
		t.Fatalf("got the threads %v of the library, want one", threads)
	}
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGHUP)
	defer signal.Stop(arrived)
	for range 100 {
		if err := unix.Tgkill(os.Getpid(), threads[0], unix.SIGHUP); err != nil {
			t.Fatal(err)
		}
		<-arrived
	}
}

// stubThreads returns the threads of this process that the library started.
func stubThreads(t *testing.T) (ids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		comm, err := os.ReadFile(filepath.Join("/proc/self/task", e.Name(), "comm"))
		if id, bad := strconv.Atoi(e.Name()); err == nil && bad == nil && string(comm) == "dcgm-stub\n" {
			ids = append(ids, id)
		}
	}
	return ids
}

// A hundred lost connections leak nothing.
func TestDCGMReconnects(t *testing.T) {
	s := newStub(t)
	d := s.open(t, Options{})
	cycle := func(n int) {
		s.play(t, fmt.Sprint("life ", n))
		failsDCGM(t, d, "dcgmEntitiesGetLatestValues", "(-21)")
		if len(readDCGM(t, d)) != 2 {
			t.Fatal("no devices")
		}
	}
	readDCGM(t, d)
	for i := range 5 {
		cycle(1 + i)
	}
	files, heap, resident, goroutines := usage(t)
	for i := range 100 {
		cycle(100 + i)
	}
	files2, heap2, resident2, goroutines2 := usage(t)
	t.Logf("files %d, then %d; heap %d, then %d bytes; resident %d, then %d pages", files, files2, heap, heap2, resident, resident2)
	if files2 != files || goroutines2 >= goroutines+100 { // some goroutines are the runtime's
		t.Errorf("got %d files and %d goroutines, had %d and %d", files2, goroutines2, files, goroutines)
	}
	// Each connection of the stub holds 1 MiB, and the values of each Read take 2 × 55 × 4,128 bytes: a leak of 100 of
	// either would show.
	if grown := int64(heap2) - int64(heap); grown > 256<<10 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if grown := (resident2 - resident) * os.Getpagesize(); grown > 32<<20 {
		t.Errorf("the process grew by %d bytes", grown)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if calls := s.calls(t); calls[len(calls)-1] != "dcgmShutdown handles=0 groups=0" {
		t.Errorf("at the end it called %q", calls[len(calls)-3:])
	}
}

// usage returns the open files, bytes of live heap, resident pages and goroutines of this process.
func usage(t *testing.T) (files int, heap uint64, resident, goroutines int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size int
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.GC() // the first cycle only moves the pools to their victim caches
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return len(entries), m.HeapAlloc, resident, runtime.NumGoroutine()
}
