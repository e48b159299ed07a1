package lab

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Machine describes the machine of the measurement in a line.
func Machine() string {
	cpu := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	kernel := runtime.GOOS
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = "Linux " + strings.TrimSpace(string(text))
	}
	return fmt.Sprintf("%s, %d cores (%s), %s, %s", cpu, runtime.NumCPU(), runtime.GOARCH, kernel, runtime.Version())
}

// Today returns the date in UTC.
func Today() string { return time.Now().UTC().Format(time.DateOnly) }
