//go:build dcgm && linux && (amd64 || arm64)

package dcgm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"replayd/internal/gpu"
)

// buffers are reused by all calls and sessions: one value alone has 4,128 bytes.
type buffers struct {
	values     []fieldValue
	hierarchy  migHierarchy
	attributes deviceAttributes
}

// latest returns the latest value of each field of each entity. The result is valid until the next call.
func (s *session) latest(entities []entityPair, ids []uint16, flags uint32) ([]fieldValue, error) {
	n := len(entities) * len(ids)
	if cap(s.buffers.values) < n {
		s.buffers.values = make([]fieldValue, n)
	}
	values := s.buffers.values[:n]
	clear(values) // values that the answer leaves out must not keep their earlier content
	err := s.call("dcgmEntitiesGetLatestValues", func() int32 {
		return s.library.Latest(s.handle, &entities[0], uint32(len(entities)), &ids[0], uint32(len(ids)), flags, &values[0])
	})
	if err != nil {
		return nil, err
	}
	return values, nil
}

// counts classifies the values of one Read. The last XID does not count as good: it is reported even if the engine has
// stopped sampling or the GPU is lost.
type counts struct {
	good, old, strange int
	newest             time.Time // sample time of the newest old value
	layout             uint32    // version of a strange value
}

// read reads the values of the GPUs, then those of the instances.
func (s *session) read() (r gpu.Reading, err error) {
	s.reads++
	var c counts
	gpus, err := s.figures(s.gpus, &s.fields, &c, &r)
	if err != nil {
		return r, err
	}
	var instances []gpu.Device
	if len(s.instances) > 0 && len(s.perInstance) > 0 {
		if instances, err = s.figures(s.instances, &s.perInstance, &c, &r); err != nil {
			return r, err
		}
	}
	switch {
	case c.good == 0 && c.strange > 0:
		return r, fmt.Errorf("want values of version %#x, got %#x", versionFieldValue, c.layout)
	case c.good == 0 && c.old > 0:
		return r, fmt.Errorf("every value is stale, the newest from %s: the engine has stopped sampling, or its clock differs from this host's",
			c.newest.UTC().Format(time.RFC3339))
	case c.good == 0:
		return r, fmt.Errorf("none of %d GPUs gives a value: they may have fallen off the bus", len(s.gpus))
	}
	for i, g := range s.gpus {
		s.notice(g, silent(gpus[i]))
		r.Devices = append(r.Devices, gpus[i])
		for j := range instances {
			if s.instances[j].gpu == g.gpu {
				r.Devices = append(r.Devices, instances[j])
			}
		}
	}
	return r, nil
}

// figures reads fields of entities. It removes fields that the engine does not know from the list.
func (s *session) figures(entities []entity, fields *[]*gpu.Field, c *counts, r *gpu.Reading) ([]gpu.Device, error) {
	who := pairs(entities)
	values, err := s.latest(who, numbers(*fields), 0)
	if refused := err; unknownField(err) {
		var unknown []*gpu.Field
		unknown, err = blame(*fields, func(part []*gpu.Field) error {
			_, err := s.latest(who[:1], numbers(part), 0)
			return err
		}, unknownField)
		if err == nil && len(unknown) == len(*fields) {
			err = fmt.Errorf("the engine answers for none of the %d fields: %w", len(unknown), refused)
		}
		if err == nil {
			s.lacks(unknown)
			*fields = without(*fields, unknown)
			values, err = s.latest(who, numbers(*fields), 0)
		}
	}
	if err != nil {
		return nil, err
	}
	devices := make([]gpu.Device, len(entities))
	for i, e := range entities {
		devices[i] = e.device
		devices[i].Values = map[*gpu.Field]float64{}
	}
	now := time.Now()
	for i := range values {
		v := &values[i]
		if v.Version != versionFieldValue {
			c.strange, c.layout = c.strange+1, v.Version
			continue
		}
		// The order of the values is not guaranteed.
		at := find(entities, v)
		field := slices.IndexFunc(*fields, func(f *gpu.Field) bool { return f.ID == v.FieldID })
		if at < 0 || field < 0 {
			continue
		}
		f := (*fields)[field]
		raw, ok := v.raw()
		if !ok || f.Blank(raw) {
			continue
		}
		s.given[f] = true
		sampled := time.UnixMicro(v.TS)
		if !s.fresh(v, now) {
			if c.old++; sampled.After(c.newest) {
				c.newest = sampled
			}
			continue
		}
		if f.ID != fieldXID {
			if c.good++; sampled.After(r.Sampled) {
				r.Sampled = sampled
			}
		}
		r.Add(&devices[at], f, f.Names[0], raw)
	}
	return devices, nil
}

// raw returns the value in DCGM's unit, or false if there is none. An int64 may still be a blank.
func (v *fieldValue) raw() (float64, bool) {
	switch {
	case v.Status != stOK:
	case v.FieldType == typeDouble:
		return v.double(), v.double() < gpu.BlankFloat
	case v.FieldType == typeInt64:
		return float64(v.int64()), true
	}
	return 0, false
}

// fresh reports whether a value is recent. A cached value stays available with status 0 after its watch has ended and
// while readings fail. The last XID is always fresh: its time is that of the driver's event.
func (s *session) fresh(v *fieldValue, now time.Time) bool {
	return v.FieldID == fieldXID || now.Sub(time.UnixMicro(v.TS)).Abs() <= keepPeriods*s.options.Interval
}

// silent reports whether a GPU has no fresh value.
func silent(d gpu.Device) bool {
	for f := range d.Values {
		if f.ID != fieldXID {
			return false
		}
	}
	return true
}

// notice logs when a GPU stops or resumes giving values.
func (s *session) notice(e entity, silent bool) {
	if silent == s.silent[e.pair] {
		return
	}
	s.silent[e.pair] = silent
	log := s.options.Log.With("address", s.address.given, "gpu", e.device.Index, "uuid", e.device.UUID)
	if silent {
		log.Warn("libdcgm: a GPU gives no values: it may have fallen off the bus")
	} else {
		log.Info("libdcgm: the GPU gives values again")
	}
}

// versions adds the versions of the library and the engine to an error that their difference causes: a newer library
// uses functions that an older engine does not know.
func (d *dcgmSource) versions(err error) error {
	if !has(err, stFunctionNotFound, stVersionMismatch) || d.session == nil {
		return err
	}
	s := d.session
	ask := func(name string, function func(v *versionInfo) int32) string {
		v := versionInfo{Version: versionVersionInfo}
		if err := s.call(name, func() int32 { return function(&v) }); err != nil {
			return "unknown"
		}
		build, _, _ := strings.Cut(string(v.BuildInfo[:]), "\x00")
		for part := range strings.SplitSeq(build, ";") {
			if version, ok := strings.CutPrefix(part, "version:"); ok {
				return string(gpu.Label(version))
			}
		}
		return "unknown"
	}
	own := ask("dcgmVersionInfo", s.library.OwnVersion)
	engine := ask("dcgmHostengineVersionInfo", func(v *versionInfo) int32 { return s.library.EngineVersion(s.handle, v) })
	return fmt.Errorf("%s is %s, nv-hostengine %s; the library must not be the newer one: %w", dcgmLibrary, own, engine, err)
}
