//go:build dcgm && linux && (amd64 || arm64)

package dcgm

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"replayd/internal/gpu"
)

// connectTimeout is how long the library tries to connect, with an attempt every 50 ms.
const connectTimeout = 2 * time.Second

// relistEvery is how often a session checks for changed GPUs and MIG instances and retries refused watches.
const relistEvery = time.Minute

// A session is one connection to nv-hostengine with its watches. All ids in it are valid for this connection only.
type session struct {
	*dcgmSource
	handle uintptr

	gpus, instances []entity
	fields          []*gpu.Field // fields watched on GPUs
	perInstance     []*gpu.Field // fields that MIG instances have too
	refusals        []refusal
	skipped         []*gpu.Field // fields that are not watched, since they gave no value before
	given           map[*gpu.Field]bool
	reads           int
	groups          int    // number of groups created; part of their names
	tag             string // random part of the group names
}

// An entity is a GPU or a MIG instance. Its device has no values; each Read adds them to a copy.
type entity struct {
	pair   entityPair
	gpu    uint32 // id of the GPU, or of the instance's GPU
	device gpu.Device
}

// open connects, lists the GPUs and watches their fields.
func (s *session) open() error {
	if err := s.connect(); err != nil {
		return err
	}
	gpus, instances, err := s.list()
	if err != nil {
		if has(err, stBadParam, stUninitialized, stConnectionNotValid) {
			// If the login is refused, dcgmConnect_v2 and _v3 return the result of their own disconnect: code 0 with a
			// dead handle.
			return fmt.Errorf("the engine took the connection and then dropped it, as it does when it refuses a login: %w", err)
		}
		return err
	}
	if len(gpus) == 0 {
		return errors.New("the engine sees no GPU that DCGM supports")
	}
	s.gpus, s.instances = gpus, instances
	if err := s.describe(); err != nil {
		return err
	}
	if err := s.watchAll(); err != nil {
		return err
	}
	// Wait until the first values are available.
	return s.call("dcgmUpdateAllFields", func() int32 { return s.library.Update(s.handle, 1) })
}

// connect uses dcgmConnect_v3 if the library has it.
func (s *session) connect() error {
	const timeout = uint32(connectTimeout / time.Millisecond)
	if s.library.ConnectV3 != nil {
		p := connectV3Params{Version: versionConnectV3Params, TimeoutMilliseconds: timeout}
		return s.connected("dcgmConnect_v3", func() int32 { return s.library.ConnectV3(s.address.uri(), &p, &s.handle) })
	}
	p := connectV2Params{Version: versionConnectV2Params, TimeoutMilliseconds: timeout}
	to := s.address.given
	if s.address.path != "" {
		to, p.UnixSocket = s.address.path, 1
	}
	return s.connected("dcgmConnect_v2", func() int32 { return s.library.ConnectV2(to, &p, &s.handle) })
}

func (s *session) connected(name string, function func() int32) error {
	err := s.call(name, function)
	switch {
	case err != nil:
		s.handle = 0 // the library may have written an invalid handle
		return err
	case s.handle == 0:
		return fmt.Errorf("%s: want a handle, got 0", name)
	}
	return nil
}

// list returns the GPUs and MIG instances.
func (s *session) list() (gpus, instances []entity, err error) {
	var ids [maxDevices]uint32
	var n int32
	err = s.call("dcgmGetAllSupportedDevices", func() int32 { return s.library.SupportedDevices(s.handle, &ids, &n) })
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids[:min(max(n, 0), maxDevices)] {
		gpus = append(gpus, entity{
			pair: entityPair{entityGPU, id}, gpu: id,
			device: gpu.Device{Index: gpu.Label(strconv.FormatUint(uint64(id), 10)), Hostname: gpu.Label(s.address.host)},
		})
	}
	h := &s.buffers.hierarchy
	*h = migHierarchy{Version: versionMigHierarchy}
	err = s.call("dcgmGetGpuInstanceHierarchy", func() int32 { return s.library.Hierarchy(s.handle, h) })
	switch {
	case dead(err):
		return nil, nil, err
	case err != nil:
		s.once("mig", "MIG instances cannot be listed: their GPUs are read whole", "err", err)
		return gpus, nil, nil
	}
	for _, m := range h.Entities[:min(h.Count, maxHierarchyInfo)] {
		if m.Entity.Group != entityGPUInstance || !slices.ContainsFunc(gpus, func(g entity) bool { return g.gpu == m.Parent.ID }) {
			continue // a compute instance inside an instance, or an instance of a GPU that is not listed
		}
		instances = append(instances, entity{
			pair: m.Entity, gpu: m.Parent.ID,
			device: gpu.Device{
				Index:    gpu.Label(strconv.FormatUint(uint64(m.Parent.ID), 10)),
				UUID:     text(m.Info.GPUUUID[:]),
				Hostname: gpu.Label(s.address.host),
				Instance: gpu.Label(strconv.FormatUint(uint64(m.Info.InstanceID), 10)),
			},
		})
	}
	return gpus, instances[:min(len(instances), maxGroupEntities-len(gpus))], nil
}

// describe reads UUID, model and MIG profile. An entity whose attributes cannot be read has none.
func (s *session) describe() error {
	for i := range s.gpus {
		e := &s.gpus[i]
		a := &s.buffers.attributes
		*a = deviceAttributes{Version: versionDeviceAttributes}
		err := s.call("dcgmGetDeviceAttributes", func() int32 { return s.library.Attributes(s.handle, e.pair.ID, a) })
		if dead(err) {
			return err
		}
		if err != nil {
			s.once("attributes "+string(e.device.Index), "a GPU does not say what it is", "gpu", e.device.Index, "err", err)
			continue
		}
		e.device.UUID, e.device.Model = text(a.Identifiers.UUID[:]), text(a.Identifiers.DeviceName[:])
	}
	if len(s.instances) == 0 {
		return nil
	}
	for i := range s.instances {
		in := &s.instances[i]
		for _, e := range s.gpus {
			if e.gpu == in.gpu {
				in.device.UUID, in.device.Model = e.device.UUID, e.device.Model
			}
		}
	}
	// As in dcgm-exporter, the name of an instance is its profile, and only the driver has it.
	values, err := s.latest(pairs(s.instances), []uint16{fieldName}, flagLive)
	if dead(err) {
		return err
	}
	if err != nil {
		s.once("profiles", "MIG instances do not say their profile", "err", err)
	}
	for i := range values {
		v := &values[i]
		if j := find(s.instances, v); j >= 0 && v.Status == stOK && v.FieldID == fieldName && v.FieldType == typeString {
			s.instances[j].device.Profile = v.text()
		}
	}
	return nil
}

// due reports whether it is time to list the GPUs again.
func (s *session) due() bool {
	return s.reads > 0 && s.reads%max(1, int(relistEvery/s.options.Interval)) == 0
}

// changed reports whether GPUs or MIG instances have changed, so that a new session is needed.
func (s *session) changed() bool {
	gpus, instances, err := s.list()
	same := func(a, b entity) bool {
		return a.pair == b.pair && a.gpu == b.gpu && a.device.Instance == b.device.Instance
	}
	return err != nil || !slices.EqualFunc(gpus, s.gpus, same) || !slices.EqualFunc(instances, s.instances, same)
}

// name returns a new name for a group. Field group names must be unique among all clients of an engine.
func (s *session) name() string {
	if s.tag == "" {
		s.tag = fmt.Sprintf("replayd-%.63s-%d-%.8s", gpu.Hostname(), os.Getpid(), rand.Text())
	}
	s.groups++
	return fmt.Sprintf("%s-%d", s.tag, s.groups)
}

func pairs(entities []entity) []entityPair {
	list := make([]entityPair, len(entities))
	for i, e := range entities {
		list[i] = e.pair
	}
	return list
}

// find returns the index of the entity of a value, or -1.
func find(entities []entity, v *fieldValue) int {
	return slices.IndexFunc(entities, func(e entity) bool { return e.pair == entityPair{v.Group, v.ID} })
}
