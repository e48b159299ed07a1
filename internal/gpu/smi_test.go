package gpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/secret"
)

// fake returns an SMI that runs the fake in the given mode.
func fake(t *testing.T, mode, file string) *SMI {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(fakeMode, mode)
	t.Setenv(fakeFile, file)
	s := NewSMI(self)
	s.hostname = "node-1"
	return s
}

// table writes a table for the fake.
func table(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "table.csv")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSMIReadsH200 reads the output of a real driver, which knows all names in fields.csv.
func TestSMIReadsH200(t *testing.T) {
	s := fake(t, "table", "testdata/smi/h200_610.43.02.csv")
	r, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.unknown) > 0 {
		t.Errorf("left out: %v", s.unknown)
	}
	golden(t, "testdata/smi/h200_610.43.02.golden", describe(r.Devices))
}

// TestSMIOfOldDriver checks that unknown names are replaced by older ones or left out, and are not queried again.
func TestSMIOfOldDriver(t *testing.T) {
	s := fake(t, "table", table(t,
		"index, uuid, clocks_throttle_reasons.active, temperature.gpu, power.draw [W], memory.used [MiB], utilization.gpu [%], name",
		"0, GPU-1, 0x0000000000000044, 61, 249.99 W, 1024 MiB, 29 %, Tesla V100, 32GB, SXM2",
		"1, GPU-2, [Not Supported], [N/A], [Unknown Error], [GPU is lost], [Insufficient Permissions], [Unknown Error]",
	))
	want := []Device{
		{Index: "0", UUID: "GPU-1", Model: "Tesla V100, 32GB, SXM2", Hostname: "node-1", Values: map[*Field]float64{
			fieldOf(112): 0x44, fieldOf(150): 61, fieldOf(155): 249.99, fieldOf(203): 0.29, fieldOf(252): 1 << 30,
		}},
		{Index: "1", UUID: "GPU-2", Hostname: "node-1", Values: map[*Field]float64{}},
	}
	for range 2 {
		r, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.Devices); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if got := query(s.columns()); got != "index,uuid,clocks_throttle_reasons.active,temperature.gpu,power.draw,utilization.gpu,memory.used,name" {
		t.Errorf("asks for %s", got)
	}
}

// TestSMIBesideGoodRows has lines that are no rows, a board that is lost, impossible values, and exit statuses: they
// are told, and cost no other row and no other value (microsoft/pai#3756, NVIDIA/gpu-operator#20).
func TestSMIBesideGoodRows(t *testing.T) {
	head := "index, uuid, temperature.gpu, power.draw [W], utilization.gpu [%], name"
	rows := []string{head, "0, GPU-1, 61, 249.99 W, 29 %, H100", "1, GPU-2, 62, 250.01 W, 30 %, H100"}
	good := "gpu 0 uuid GPU-1 model \"H100\" host node-1 mig \"\" \"\" pod \"\" \"\" \"\"\n  temperature_celsius  61\n" +
		"  power_watts  249.99\n  utilization_ratio  0.29\n"
	two := strings.NewReplacer("gpu 0", "gpu 1", "GPU-1", "GPU-2", "61", "62", "249.99", "250.01", "0.29", "0.3").Replace(good)
	empty := "gpu 2 uuid GPU-3 model \"\" host node-1 mig \"\" \"\" pod \"\" \"\" \"\"\n"
	for _, c := range []struct {
		mode  string
		more  []string // rows
		want  string
		bad   int
		first secret.Text
	}{
		{"table", nil, good + two, 0, ""},
		{"warning", nil, good + two, 1, `line 3: want 6 columns, got "WARNING: infoROM is corrupted at gpu 0000:3B:00.0"`},
		{"warning 14", nil, good + two, 2, `line 3: want 6 columns, got "WARNING: infoROM is corrupted at gpu 0000:3B:00.0"`},
		{
			"table",
			[]string{"2, GPU-3, [GPU is lost], [GPU is lost], [Unknown Error], [GPU is lost]"},
			good + two + empty, 3, `line 3: temperature.gpu: want a number, got "[GPU is lost]"`,
		},
		{
			"table",
			[]string{"2, GPU-3, 4294967295, -1 W, 12345 %, [N/A]"},
			good + two + empty, 3, "temperature.gpu of GPU 2 GPU-3: want -100 to 250, got 4294967295",
		},
	} {
		s := fake(t, c.mode, table(t, slices.Concat(rows, c.more)...))
		r, err := s.Read(t.Context())
		if got := describe(r.Devices); err != nil || got != c.want || r.Bad != c.bad || r.first != c.first {
			t.Errorf("%s, %q: got\n%s%d left out, %s, %v\nwant\n%s%d left out, %s", c.mode, c.more, got, r.Bad, r.first, err, c.want, c.bad, c.first)
		}
	}
	s := fake(t, "table", table(t, head, "x, GPU-1, 61, 249.99 W, 29 %, H100"))
	if _, err := s.Read(t.Context()); err == nil || !strings.HasSuffix(err.Error(), `: line 1: index: want a number, got "x"`) {
		t.Errorf("want an error without a row, got %v", err)
	}
}

// TestSMIOfBusyMachine has a program that has written and ended before this process comes to read, and a child that
// keeps the pipe open.
func TestSMIOfBusyMachine(t *testing.T) {
	o, err := newOutput(func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	want := strings.Repeat("0, GPU-1, 61, 249.99 W, 29 %, H100\n", 1000) // more than one reading takes
	if _, err := o.to.WriteString(want); err != nil {
		t.Fatal(err)
	}
	over := make(chan []byte)
	go func() { over <- o.end() }()
	for o.from.SetReadDeadline(time.Now()) != nil { // end has set it, too: read begins too late
		t.Fatal("no deadline")
	}
	go o.read()
	if got := string(<-over); got != want {
		t.Errorf("got %d of %d bytes", len(got), len(want))
	}
}

func TestSMIWithoutTheNeededNames(t *testing.T) {
	s := fake(t, "table", table(t, "index, name", "0, Tesla K80"))
	if _, err := s.Read(t.Context()); err == nil || !strings.HasSuffix(err.Error(), `: exit status 2: Field "uuid" is not a valid field to query.`) {
		t.Errorf("error %v", err)
	}
}

func TestSMIFaults(t *testing.T) {
	f := func(mode, want string) {
		t.Helper()
		s := fake(t, mode, "")
		_, err := s.Read(t.Context())
		if err == nil {
			t.Fatalf("%s: no error", mode)
		}
		if got := strings.ReplaceAll(err.Error(), s.path, "nvidia-smi"); got != want {
			t.Errorf("%s: error %s\nwant %s", mode, got, want)
		}
	}
	f("no driver", "nvidia-smi: exit status 9: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "+
		"Make sure that the latest NVIDIA driver is installed and running.")
	f("stderr", "nvidia-smi: exit status 3: first "+strings.Repeat("x", 191)+"…")
	f("silent", "nvidia-smi: exit status 4, and no word")
	f("flood", "nvidia-smi: killed: want at most 1048576 bytes of output, got more")
}

func TestSMIThatIsNotThere(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for path, want := range map[string]string{
		"auto":             `nvidia-smi: exec: "nvidia-smi": executable file not found in $PATH`,
		"":                 `nvidia-smi: exec: "nvidia-smi": executable file not found in $PATH`,
		"/none/nvidia-smi": "/none/nvidia-smi: fork/exec /none/nvidia-smi: no such file or directory",
	} {
		if _, err := NewSMI(path).Read(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", path, err, want)
		}
	}
}

// line returns the listener to which hanging fakes connect.
func line(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	t.Setenv(fakeLine, l.Addr().String())
	return l
}

// accept accepts two connections.
func accept(t *testing.T, l net.Listener) (both [2]net.Conn) {
	t.Helper()
	for i := range both {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		both[i] = c
	}
	return both
}

// ended waits until the process at the other end has exited.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	_ = c.Close()
}

// TestSMIThatHangs checks that a hanging nvidia-smi and its child are killed when the context ends.
func TestSMIThatHangs(t *testing.T) {
	l := line(t)
	s := fake(t, "hang", "")
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("the time is over")
	done := make(chan error)
	go func() {
		_, err := s.Read(ctx)
		done <- err
	}()
	both := accept(t, l)
	cancel(over)
	if err := <-done; !errors.Is(err, over) {
		t.Errorf("error %v, want %v", err, over)
	}
	for _, c := range both {
		ended(t, c)
	}
}

// TestSMIAtDeadline is TestSMIThatHangs with a deadline.
func TestSMIAtDeadline(t *testing.T) {
	line(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := fake(t, "hang", "").Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
}

// TestSMIWithChild reads an nvidia-smi whose child keeps the pipe open after it has exited, and checks that the child
// is killed.
func TestSMIWithChild(t *testing.T) { readWithChild(t) }

func readWithChild(t *testing.T) {
	t.Helper()
	l := line(t)
	s := fake(t, "fork", "testdata/smi/h200_610.43.02.csv")
	done := make(chan error)
	go func() {
		r, err := s.Read(t.Context())
		if err == nil && len(r.Devices) != 1 {
			err = fmt.Errorf("got %v, want the GPU", r.Devices)
		}
		done <- err
	}()
	both := accept(t, l)
	for _, c := range both { // one of the two waits for this byte and exits
		if _, err := c.Write([]byte("x")); err != nil {
			t.Error(err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, c := range both {
		ended(t, c)
	}
}

func TestParseSMI(t *testing.T) {
	columns := []column{{fieldOf(150), "temperature.gpu"}, {fieldOf(156), "energy"}}
	f := func(text, want string) {
		t.Helper()
		r := parseSMI([]byte(text), columns)
		var got []string
		for _, d := range r.Devices {
			got = append(got, string(d.Index+" "+d.UUID+" "+d.Model))
		}
		if r.Bad > 0 {
			got = append(got, fmt.Sprintf("%d left out: %s", r.Bad, r.first))
		}
		if s := strings.Join(got, "; "); s != want {
			t.Errorf("%q: %s, want %s", text, s, want)
		}
	}
	f("", "")
	f("0, GPU-1, 40, 1, A\r\n\n1,GPU-2,41,2,B, C,D\n", "0 GPU-1 A; 1 GPU-2 B, C,D")
	f("0, [N/A], 40, 1, [N/A]\n", "0  ")
	f("No devices were found\n", `1 left out: line 1: want 5 columns, got "No devices were found"`)
	f("0, GPU-1, 40, 1, A\nx, GPU-1, 40, 1, A\n", `0 GPU-1 A; 1 left out: line 2: index: want a number, got "x"`)
}

func TestParseCell(t *testing.T) {
	f := func(cell string, want float64) {
		t.Helper()
		if got, ok := parseCell(cell); !ok || got != want {
			t.Errorf("%q = %v, %v, want %v", cell, got, ok, want)
		}
	}
	f("0", 0)
	f("83.38", 83.38)
	f("83.38 W", 83.38)
	f("-5", -5)
	f("0x00000000000001FF", 0x1ff)
	f("Enabled", 1)
	f("Disabled", 0)
	f("Active", 1)
	f("Not Active", 0)
	f("Yes", 1)
	f("No", 0)
	for _, cell := range []string{
		"", "N/A", "[N/A]", "[Not Supported]", "[Unknown Error]", "[GPU is lost]", "[Requested functionality has been deprecated]",
		"nan", "Inf", "-inf", "1e9", "0x", "0xfffffffffffffffff", "1_000", "--1", "1.2.3", "0x1p4", "P0",
	} {
		if v, ok := parseCell(cell); ok {
			t.Errorf("%q = %v, want no value", cell, v)
		}
	}
}
