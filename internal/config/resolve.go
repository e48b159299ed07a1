package config

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"

	"replayd/internal/fault"
	"replayd/internal/scalar"
	"replayd/internal/schedule"
)

// Resolve sets values that the configuration leaves open: the target if there is only one, the defaults of align,
// timezone and overlap, and an automatic shard index, which comes from the environment or the host name.
func (c *Config) Resolve() fault.List {
	var f fault.List
	target := ""
	if len(c.Targets) == 1 {
		target = c.Targets[0].Name
	}
	for i := range c.Workloads {
		w := &c.Workloads[i]
		if w.Target == "" {
			w.Target = target
		}
		resolveRepeat(&w.Repeat)
		if err := resolveShard(&w.Shard); err != nil {
			f.Add(fmt.Sprintf("workloads[%d].shard.index", i), "auto: %v", err)
		}
	}
	for i := range c.GPUs {
		if g := &c.GPUs[i]; g.Target == "" {
			g.Target = target
		}
	}
	return f
}

func resolveRepeat(r *schedule.Repeat) {
	switch r.Mode {
	case schedule.Loops:
		r.Align = cmp.Or(r.Align, schedule.WallClock)
	case schedule.Cron:
		r.Timezone, r.Overlap = cmp.Or(r.Timezone, "UTC"), cmp.Or(r.Overlap, schedule.Skip)
	}
}

func resolveShard(s *schedule.Shard) error {
	switch {
	case s.Index != scalar.AutoValue:
		return nil
	case s.Of <= 1: // a single shard has index 0 in any pod
		s.Index = 0
		return nil
	}
	index, from, err := autoIndex()
	if err != nil {
		return err
	}
	if index >= s.Of {
		return fmt.Errorf("want a shard index < %d, got %d (from %s)", s.Of, index, from)
	}
	s.Index = scalar.Auto(index)
	return nil
}

// autoIndex returns the index of the pod in an indexed Job or a StatefulSet.
func autoIndex() (index int, from string, err error) {
	if v, ok := os.LookupEnv("JOB_COMPLETION_INDEX"); ok {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return 0, "", fmt.Errorf("want a number in JOB_COMPLETION_INDEX, got %q", v)
		}
		return n, "JOB_COMPLETION_INDEX", nil
	}
	host, err := os.Hostname()
	if err != nil {
		return 0, "", err
	}
	_, tail, _ := strings.Cut(host[max(strings.LastIndexByte(host, '-'), 0):], "-")
	n, err := strconv.Atoi(tail)
	if err != nil || n < 0 {
		return 0, "", fmt.Errorf("want JOB_COMPLETION_INDEX in the environment or -N at the end of the host's name, got host %q", host)
	}
	return n, "host " + host, nil
}
