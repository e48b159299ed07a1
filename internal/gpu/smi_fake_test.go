package gpu

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The test binary acts as nvidia-smi if this variable is set, so that the tests start, kill and read real processes.
const (
	fakeMode = "REPLAYD_FAKE_NVIDIA_SMI"
	fakeFile = "REPLAYD_FAKE_NVIDIA_SMI_FILE" // a table whose first line lists the known names
	fakeLine = "REPLAYD_FAKE_NVIDIA_SMI_LINE" // address to which a hanging fake connects until its process ends
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(fakeMode); mode != "" {
		os.Exit(fakeSMI(mode))
	}
	os.Exit(m.Run())
}

// aliases maps names to those in nvidia-smi's header (nvidia-smi --help-query-gpu, driver 610.43.02).
var aliases = map[string]string{"clocks.sm": "clocks.current.sm", "clocks.mem": "clocks.current.memory"}

func fakeSMI(mode string) (status int) {
	switch mode {
	case "table":
		return fakeTable()
	case "hang":
		fakeChild("stay")
		return fakeStay()
	case "stay":
		return fakeStay()
	case "fork":
		fakeChild("stay")
		fakeWait()
		return fakeTable()
	case "warning", "warning 14":
		if status := fakeTable(); status != 0 {
			return status
		}
		fmt.Println("WARNING: infoROM is corrupted at gpu 0000:3B:00.0")
		if mode != "warning" {
			return 14
		}
	case "flood":
		line := []byte(strings.Repeat("0, ", 1000) + "\n")
		for range 10 << 20 / len(line) {
			if _, err := os.Stdout.Write(line); err != nil {
				return 1
			}
		}
	case "no driver": // nvidia-smi writes this to stdout
		fmt.Println("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.")
		fmt.Println()
		return 9
	case "stderr":
		fmt.Println("on stdout")
		fmt.Fprintln(os.Stderr, "\nfirst "+strings.Repeat("x", 300)+"\nsecond")
		return 3
	case "silent":
		return 4
	}
	return 0
}

// fakeChild starts another fake that inherits the pipes of this one.
func fakeChild(mode string) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), fakeMode+"="+mode)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := child.Start(); err != nil {
		panic(err)
	}
}

// fakeStay blocks until the connection closes or the process is killed.
func fakeStay() int {
	c, err := net.Dial("tcp", os.Getenv(fakeLine))
	if err != nil {
		return 1
	}
	_, _ = io.Copy(io.Discard, c)
	return 0
}

// fakeWait blocks until it receives a byte.
func fakeWait() {
	c, err := net.Dial("tcp", os.Getenv(fakeLine))
	if err != nil {
		panic(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		panic(err)
	}
}

// fakeTable answers a query from a file. Like nvidia-smi, it rejects the first unknown name.
func fakeTable() int {
	text, err := os.ReadFile(os.Getenv(fakeFile))
	if err != nil {
		panic(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	header := strings.Split(lines[0], ", ")
	for i := range header {
		header[i], _, _ = strings.Cut(header[i], " [")
	}
	query, _ := strings.CutPrefix(os.Args[1], "--query-gpu=")
	var columns []int
	for _, name := range strings.Split(query, ",") {
		long := name
		if aliases[name] != "" {
			long = aliases[name]
		}
		i := slices.Index(header, long)
		if i < 0 {
			fmt.Printf("Field %q is not a valid field to query.\n\n", name)
			return 2
		}
		columns = append(columns, i)
	}
	nounits := os.Args[2] == "--format=csv,noheader,nounits"
	for _, line := range lines[1:] {
		cells := strings.SplitN(line, ", ", len(header))
		for i, c := range columns {
			cell := cells[c]
			if nounits && i < len(columns)-1 && cell != "" && strings.ContainsRune("-0123456789", rune(cell[0])) {
				cell, _, _ = strings.Cut(cell, " ")
			}
			if i > 0 {
				fmt.Print(", ")
			}
			fmt.Print(cell)
		}
		fmt.Println()
	}
	return 0
}
