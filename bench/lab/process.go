package lab

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc: sysconf(_SC_CLK_TCK) is 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// CPU returns the user and system CPU time of a process so far, in ticks of 10 ms.
func CPU(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is a name in parentheses, which can hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: want at least 15 fields, got %q", pid, text)
	}
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime, proc(5)
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// Memory returns the current and the peak resident memory of a process, in bytes.
func Memory(pid int) (now, peak int64, err error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		var to *int64
		switch name {
		case "VmRSS":
			to = &now
		case "VmHWM":
			to = &peak
		default:
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %s: %w", path, name, err)
		}
		*to = kib << 10
	}
	if now == 0 || peak == 0 {
		return 0, 0, fmt.Errorf("%s: want VmRSS and VmHWM, got neither or one", path)
	}
	return now, peak, nil
}
