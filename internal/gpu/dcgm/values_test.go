//go:build dcgm && linux && (amd64 || arm64)

package dcgm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/gpu"
)

func TestDCGMNoGPU(t *testing.T) {
	s := newStub(t)
	s.play(t, "gpus 0")
	d := s.open(t, Options{})
	closeSource(t, d)
	failsDCGM(t, d, "libdcgm: localhost:5555: the engine sees no GPU that DCGM supports")
	s.play(t, "gpus 1")
	if devices := readDCGM(t, d); len(devices) != 1 {
		t.Errorf("got %d devices, want 1", len(devices))
	}
}

// A GPU falls off the bus while it is watched: its values are blank, but their timestamps are recent. The last XID
// stays, because it may tell the cause.
func TestDCGMLostGPU(t *testing.T) {
	s := newStub(t)
	d := s.open(t, Options{})
	closeSource(t, d)
	readDCGM(t, d)
	s.play(t, "lost 1")
	for range 2 {
		devices := readDCGM(t, d)
		complete(t, devices[0], 0, gpu.Fields())
		complete(t, devices[1], 1, []*gpu.Field{fieldOf(fieldXID)})
		if string(devices[1].UUID) != uuid(1) {
			t.Errorf("got the UUID %q", devices[1].UUID)
		}
	}
	s.play(t)
	complete(t, readDCGM(t, d)[1], 1, gpu.Fields())
	if calls := s.calls(t); begins(calls, "dcgmConnect") != 1 {
		t.Errorf("it connected anew: %q", calls)
	}
	logged(t, s, "a GPU gives no values", "the GPU gives values again")

	s.play(t, "lost 0", "lost 1")
	failsDCGM(t, d, "none of 2 GPUs gives a value: they may have fallen off the bus")
	s.play(t)
	complete(t, readDCGM(t, d)[0], 0, gpu.Fields())
}

// The engine refuses to watch a lost GPU.
func TestDCGMUnwatchableGPU(t *testing.T) {
	s := newStub(t)
	s.play(t, "gpus 5", "lost 3", "unwatchable 3 -18")
	d := s.open(t, Options{Interval: 30 * time.Second}) // two Reads take a minute
	for range 2 {
		devices := readDCGM(t, d)
		if len(devices) != 5 {
			t.Fatalf("got %d devices, want 5", len(devices))
		}
		for i, dev := range devices {
			if i == 3 {
				complete(t, dev, 3, nil)
			} else {
				complete(t, dev, uint32(i), gpu.Fields())
			}
		}
	}
	logged(t, s, "a GPU does not say what it is", "the engine refuses to watch a GPU", "the engine refuses to watch a GPU", "a GPU gives no values")
	s.play(t, "gpus 5")
	back := readDCGM(t, d)[3]
	complete(t, back, 3, gpu.Fields())
	if string(back.UUID) != uuid(3) {
		t.Errorf("got the UUID %q", back.UUID)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	// The source connected once. The groups are GPUs 0 and 1, 2, 4 and finally 3; groups of failed watches were
	// destroyed.
	if calls := s.calls(t); begins(calls, "dcgmConnect") != 1 || !slices.Contains(calls, "dcgmDisconnect groups=8 fieldgroups=2") {
		t.Errorf("got the calls %q", calls)
	}
}

// The source lists the GPUs every minute and finds a new one.
func TestDCGMNewGPU(t *testing.T) {
	s := newStub(t)
	d := s.open(t, Options{Interval: 20 * time.Second})
	closeSource(t, d)
	readDCGM(t, d)
	s.play(t, "gpus 3")
	for i, want := range []int{2, 2, 3, 3} {
		if devices := readDCGM(t, d); len(devices) != want {
			t.Errorf("Read %d: got %d devices, want %d", i+2, len(devices), want)
		}
	}
	if calls := s.calls(t); begins(calls, "dcgmConnect") != 2 || begins(calls, "dcgmDisconnect") != 1 {
		t.Errorf("got the calls %q", calls)
	}
}

func TestDCGMBlanks(t *testing.T) {
	words := []string{
		"blank", "notfound", "notsupported", "notpermitted", "blank32", "notfound32", "notsupported32", "notpermitted32",
		"status:-14", "status:-16", "status:-17", "status:-18", "type:s", "type:b", "nan",
	}
	s := newStub(t)
	d := s.open(t, Options{})
	closeSource(t, d)
	for _, word := range words {
		ids := []uint16{155, 203, 1004} // doubles and an int64, of the device and of the profiling module
		switch {
		case word == "nan":
			ids = []uint16{155, 1004}
		case strings.HasSuffix(word, "32"): // in a double, the int32 sentinels are valid values
			ids = []uint16{203, 1012}
		}
		lines := []string{}
		for _, id := range ids {
			lines = append(lines, fmt.Sprintf("value 1 %d %s", id, word))
		}
		s.play(t, lines...)
		t.Run(word, func(t *testing.T) {
			devices := readDCGM(t, d)
			complete(t, devices[0], 0, gpu.Fields())
			complete(t, devices[1], 1, except(ids...))
		})
	}
	// The numbers next to the sentinels are valid.
	s.play(t, "value 0 156 2147483631", "value 1 156 2147483636")
	devices := readDCGM(t, d)
	for i, want := range []float64{2147483.631, 2147483.636} {
		if got := devices[i].Values[fieldOf(156)]; got != want {
			t.Errorf("GPU %d: got %v J, want %v", i, got, want)
		}
	}
	// The value has another type than the field.
	s.play(t, "value 0 203 double:50", "value 1 203 double:140737488355330")
	devices = readDCGM(t, d)
	if got, ok := devices[1].Values[fieldOf(203)]; devices[0].Values[fieldOf(203)] != 0.5 || ok {
		t.Errorf("got %v and %v, want 0.5 and none", devices[0].Values[fieldOf(203)], got)
	}
	// A value that the answer leaves out does not keep its previous content.
	s.play(t, "omitted 155", "omitted 203")
	for i, dev := range readDCGM(t, d) {
		complete(t, dev, uint32(i), except(155, 203))
	}
	// 0 is a valid value.
	s.play(t, "value * 203 0", "value * 155 0")
	for _, dev := range readDCGM(t, d) {
		if v, ok := dev.Values[fieldOf(203)]; !ok || v != 0 {
			t.Errorf("got %v, %t, want 0", v, ok)
		}
	}
}

// A value that cannot be is none, and is counted. The newest sample says when the engine sampled.
func TestDCGMImpossibleValue(t *testing.T) {
	s := newStub(t)
	d := s.open(t, Options{}) // every 5 s
	closeSource(t, d)
	s.play(t, "value 1 203 12345", "value 1 100 4294967295", "age * 4", "age 230 1")
	r, err := d.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	complete(t, r.Devices[0], 0, gpu.Fields())
	complete(t, r.Devices[1], 1, except(100, 203))
	if age := time.Since(r.Sampled); r.Bad != 2 || age < 4*time.Second || age > 10*time.Second {
		t.Errorf("%d left out, sampled %v ago, want 2 and 4 s", r.Bad, age)
	}
}

// The cache returns a field's last value forever.
func TestDCGMStale(t *testing.T) {
	s := newStub(t)
	d := s.open(t, Options{}) // every 5 s
	closeSource(t, d)
	s.play(t, "age 155 14", "age 203 16", "age 1004 -16", "age 230 86400")
	for i, dev := range readDCGM(t, d) {
		complete(t, dev, uint32(i), except(203, 1004))
	}
	s.play(t, "age * 100")
	failsDCGM(t, d, "every value is stale, the newest from 20", "the engine has stopped sampling, or its clock differs from this host's")
	s.play(t)
	for i, dev := range readDCGM(t, d) {
		complete(t, dev, uint32(i), gpu.Fields())
	}
}

// Fields that give no value in the first three readings are told once, and no longer watched until the next connection,
// which tries each again. The last XID stays: it has no value before the first.
func TestDCGMMuteFields(t *testing.T) {
	s := newStub(t)
	mute := []string{"value * 1091 notsupported", "value * 1092 status:-14", "value * 230 blank", "value 1 155 blank", "age 203 100"}
	s.play(t, mute...)
	d := s.open(t, Options{})
	closeSource(t, d)
	all, fewer := len(gpu.Fields()), len(gpu.Fields())-2
	watched := func() (n int) {
		t.Helper()
		readDCGM(t, d)
		for _, c := range s.calls(t) {
			_, _ = fmt.Sscanf(c, "dcgmEntitiesGetLatestValues entities=2 fields=%d", &n)
		}
		return n
	}
	for i, want := range []int{all, all, all, fewer, fewer, fewer, fewer, fewer} {
		if n := watched(); n != want {
			t.Fatalf("reading %d: %d fields, want %d", i+1, n, want)
		}
	}
	s.play(t, append(mute, "life 2")...) // the engine is restarted
	failsDCGM(t, d, "(-21)")
	for i, want := range []int{all, all, all, fewer} {
		if n := watched(); n != want {
			t.Fatalf("reading %d of the next engine: %d fields, want %d", i+1, n, want)
		}
	}
	s.play(t, "life 3") // of another driver, which has them
	failsDCGM(t, d, "(-21)")
	for range 4 {
		if n := watched(); n != all {
			t.Fatalf("%d fields, want %d", n, all)
		}
	}
	complete(t, readDCGM(t, d)[0], 0, gpu.Fields())
	logged(t, s, `no longer watched on this connection" address=localhost:5555 fields="1091 pcie_tx_bytes_total, 1092 pcie_rx_bytes_total"`)
}

func TestDCGMReverseOrder(t *testing.T) {
	s := newStub(t)
	s.play(t, "gpus 4", "reverse")
	d := s.open(t, Options{})
	closeSource(t, d)
	for i, dev := range readDCGM(t, d) {
		complete(t, dev, uint32(i), gpu.Fields())
	}
}

func TestDCGMUnknownFields(t *testing.T) {
	for _, c := range []struct {
		line string
		ids  []uint16
	}{
		{"unknown", []uint16{1420}},
		{"unknown", []uint16{100, 157, 1424, 1001, 1092}},
		{"unanswered", []uint16{1420}},
		{"unanswered", []uint16{100, 157, 1424, 1001, 1092}},
	} {
		t.Run(fmt.Sprint(c.line, len(c.ids)), func(t *testing.T) {
			s := newStub(t)
			var lines []string
			for _, id := range c.ids {
				lines = append(lines, fmt.Sprint(c.line, " ", id))
			}
			s.play(t, lines...)
			d := s.open(t, Options{})
			for range 2 {
				for i, dev := range readDCGM(t, d) {
					complete(t, dev, uint32(i), except(c.ids...))
				}
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if calls := s.calls(t); !slices.Contains(calls, "dcgmDisconnect groups=2 fieldgroups=2") {
				t.Errorf("got the calls %q", calls)
			}
			want := make([]string, len(c.ids))
			for i := range want {
				want[i] = "the engine does not know a field"
			}
			logged(t, s, want...)
		})
	}
	s := newStub(t)
	s.play(t, "unknown 155", "unanswered 203")
	d := s.open(t, Options{fields: []*gpu.Field{fieldOf(155)}})
	closeSource(t, d)
	failsDCGM(t, d, "the engine knows none of the fields")
	d = s.open(t, Options{fields: []*gpu.Field{fieldOf(203)}})
	closeSource(t, d)
	failsDCGM(t, d, "the engine answers for none of the 1 fields: dcgmEntitiesGetLatestValues: ", "(-3)")
}

func TestDCGMNoProfiling(t *testing.T) {
	var device []*gpu.Field
	for _, f := range gpu.Fields() {
		if !profiling(f) {
			device = append(device, f)
		}
	}
	for code, want := range map[int]string{
		-36: "no profiling fields: these GPUs have none",
		-37: "no profiling fields: another process has the counters",
		-33: "no profiling fields: the engine has not loaded its profiling module",
		-38: "no profiling fields: these GPUs cannot count all of them at once",
		-6:  "no profiling fields: the engine does not watch them",
	} {
		s := newStub(t)
		s.play(t, fmt.Sprint("noprofiling ", code))
		d := s.open(t, Options{})
		closeSource(t, d)
		for range 2 {
			for i, dev := range readDCGM(t, d) {
				complete(t, dev, uint32(i), device)
			}
		}
		s.play(t, fmt.Sprint("noprofiling ", code), "life 2")
		failsDCGM(t, d, "(-21)")
		readDCGM(t, d)
		logged(t, s, want)
	}

	// One of two GPUs has no profiling counters.
	s := newStub(t)
	s.play(t, "noprofiling -36 0")
	d := s.open(t, Options{})
	closeSource(t, d)
	devices := readDCGM(t, d)
	complete(t, devices[0], 0, device)
	complete(t, devices[1], 1, gpu.Fields())
}

func TestDCGMInstances(t *testing.T) {
	s := newStub(t)
	s.play(t, "gpus 2", "mig 1 9 12 1g.10gb", "mig 1 2 1 3g.40gb", "mig 5 1 3 1g.10gb", "lost 0")
	d := s.open(t, Options{Interval: 30 * time.Second})
	closeSource(t, d)
	devices := readDCGM(t, d)
	if len(devices) != 4 {
		t.Fatalf("got %d devices, want two GPUs and two instances", len(devices))
	}
	var instance, whole []*gpu.Field // fields of an instance, and of its whole GPU: profiling is watched on the instances
	for _, f := range gpu.Fields() {
		if slices.Contains(gpu.InstanceFields, f.ID) {
			instance = append(instance, f)
		}
		if !profiling(f) {
			whole = append(whole, f)
		}
	}
	complete(t, devices[0], 0, []*gpu.Field{fieldOf(fieldXID)})
	complete(t, devices[1], 1, whole)
	complete(t, devices[2], 12, instance)
	complete(t, devices[3], 1, instance)
	for i, want := range []gpu.Device{{Index: "0"}, {Index: "1"}, {Index: "1", Instance: "9", Profile: "1g.10gb"}, {Index: "1", Instance: "2", Profile: "3g.40gb"}} {
		got := devices[i]
		if got.Index != want.Index || got.Instance != want.Instance || got.Profile != want.Profile {
			t.Errorf("device %d: got %s/%s/%s, want %s/%s/%s", i, got.Index, got.Instance, got.Profile, want.Index, want.Instance, want.Profile)
		}
		if i > 0 && (string(got.UUID) != uuid(1) || got.Model != devices[1].Model) {
			t.Errorf("device %d: got %q, %q", i, got.UUID, got.Model)
		}
	}
	// The GPU is repartitioned.
	s.play(t, "gpus 2", "mig 1 0 5 7g.80gb")
	readDCGM(t, d)
	if devices = readDCGM(t, d); len(devices) != 3 || devices[2].Profile != "7g.80gb" {
		t.Errorf("got %d devices, the last %+v", len(devices), devices[len(devices)-1])
	}
}

// logged compares the logged messages with want, in order.
func logged(t *testing.T, s *stub, want ...string) {
	t.Helper()
	lines := slices.Collect(strings.Lines(s.log.String()))
	ok := len(lines) == len(want)
	for i := range min(len(lines), len(want)) {
		ok = ok && strings.Contains(lines[i], want[i])
	}
	if !ok {
		t.Errorf("logged:\n%s\nwant\n%s", s.log, strings.Join(want, "\n"))
	}
}

func BenchmarkDCGMRead(b *testing.B) {
	s := newStub(b)
	s.play(b, "gpus 8")
	d := s.open(b, Options{})
	closeSource(b, d)
	readDCGM(b, d)
	b.ReportAllocs()
	for b.Loop() {
		readDCGM(b, d)
	}
}
