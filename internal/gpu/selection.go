package gpu

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"replayd/internal/fault"
	"replayd/internal/scalar"
	"replayd/internal/secret"
)

const (
	minUUID     = 8            // minimum length of a UUID prefix: "GPU-1234"
	maxSelected = 64 * (1 + 7) // devices of one source: GPUs and their MIG instances
)

// Select selects the devices of a source that belong to a target. The zero value selects all.
type Select struct {
	// Kubernetes labels on a dcgm-exporter's page, with the wildcards * and ?. If a MIG instance is selected, the
	// fields that only its GPU has, such as power, are selected too: once, as figures of the whole GPU. Other fields of
	// the GPU and its other instances are not selected.
	Namespace string `koanf:"namespace"`
	Pod       string `koanf:"pod"`

	UUID scalar.Words `koanf:"uuid"` // whole UUIDs, or prefixes of at least 8 characters
}

// Check returns the faults of a selection.
func (s *Select) Check() (f fault.List) {
	for _, u := range s.UUID {
		f.If(len(u) < minUUID, "uuid", "want %d characters or more, got %q", minUUID, u)
	}
	for _, l := range [][2]string{{"namespace", s.Namespace}, {"pod", s.Pod}} {
		if _, err := path.Match(l[1], ""); err != nil {
			f.Add(l[0], "%q: %v", l[1], err)
		}
	}
	return f
}

func (s *Select) has(d *Device) bool {
	named := func(u string) bool { return strings.HasPrefix(string(d.UUID), u) }
	fits := func(pattern string, label secret.Text) bool {
		ok, err := path.Match(pattern, string(label))
		return pattern == "" || ok && err == nil
	}
	return (len(s.UUID) == 0 || slices.ContainsFunc(s.UUID, named)) && fits(s.Namespace, d.Namespace) && fits(s.Pod, d.Pod)
}

// choose returns the selected devices without duplicates. A source lists a GPU that several pods share once per pod.
func (s *Select) choose(list []Device) ([]Device, error) {
	if len(list) == 0 {
		return nil, errors.New("want a GPU, got none")
	}
	cut := map[identity]bool{} // GPUs with a selected MIG instance
	for i := range list {
		d := &list[i]
		if d.Instance != "" && s.has(d) {
			cut[identity{d.identity().gpu, ""}] = true
		}
	}
	var chosen []Device
	places := map[identity]int{}
	for i := range list {
		d := &list[i]
		switch id := d.identity(); {
		case s.has(d):
		case cut[id]:
			maps.DeleteFunc(d.Values, func(f *Field, _ float64) bool { return !f.Whole() })
			if len(d.Values) == 0 {
				continue
			}
		default:
			continue
		}
		if place, known := places[d.identity()]; known {
			for f, v := range d.Values {
				chosen[place].add(f, v)
			}
			continue
		}
		if len(chosen) == maxSelected {
			return nil, fmt.Errorf("want at most %d GPUs and MIG instances, got more: select some", maxSelected)
		}
		places[d.identity()] = len(chosen)
		chosen = append(chosen, *d)
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("want one of %d GPUs and MIG instances, got none: the selection fits no one", len(list))
	}
	return chosen, nil
}

// An identity identifies a device across sources. It is made of the texts that are shown: two devices with the same ones would be duplicate series.
type identity struct{ gpu, instance secret.Text }

func (d *Device) identity() identity {
	if d.UUID != "" {
		return identity{d.UUID, d.Instance}
	}
	return identity{d.Hostname + "/" + d.Index, d.Instance}
}
