//go:build dcgm && linux && (amd64 || arm64)

package dcgm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"replayd/internal/gpu"
)

// keepPeriods is the number of periods for which the engine keeps a sample and replayd treats it as fresh.
const keepPeriods = 3

// A refusal is a GPU or MIG instance on which the engine refused to watch fields, for instance because the GPU is lost.
type refusal struct {
	entity     entityPair
	fieldGroup uintptr
}

// watchAll starts the sampling of all fields. The profiling fields are a field group of their own: one unavailable
// field fails the whole dcgmWatchFields.
func (s *session) watchAll() error {
	var device, profile []*gpu.Field
	for _, f := range without(s.options.fields, s.skipped) {
		if profiling(f) {
			profile = append(profile, f)
		} else {
			device = append(device, f)
		}
	}

	if len(device) > 0 {
		known, err := s.watch(device, pairs(slices.Concat(s.gpus, s.instances)))
		if err != nil {
			return err
		}
		s.fields = known
	}
	if len(profile) > 0 {
		known, err := s.watch(profile, pairs(s.profiled()))
		switch {
		case dead(err):
			return err
		case err != nil:
			// Do not retry on this connection: the process that owns the counters may need them again soon.
			s.once("profiling", "no profiling fields: "+profilingMeans(err), "err", err)
		default:
			s.fields = slices.Concat(s.fields, known)
		}
	}
	if len(s.fields) == 0 {
		return errors.New("none of the fields can be watched")
	}
	for _, f := range s.fields {
		if !f.Whole() {
			s.perInstance = append(s.perInstance, f)
		}
	}
	return nil
}

// mute returns the fields to skip if some have given no value in the first readings; nil: all have. To sample them is in
// vain, and makes the engine log errors: two lines each time for 1091 and 1092 on Hopper. The first XID may come late.
func (s *session) mute() []*gpu.Field {
	if s.reads != keepPeriods {
		return nil
	}
	var names []string
	skip := s.skipped
	for _, f := range s.fields {
		if !s.given[f] && f.ID != fieldXID {
			skip, names = append(skip, f), append(names, fmt.Sprintf("%d %s", f.ID, f.Name))
		}
	}
	if names == nil {
		return nil
	}
	list := strings.Join(names, ", ")
	s.once("mute "+list, "fields never give a value, and are no longer watched on this connection", "fields", list)
	return skip
}

// profiled returns the entities to watch profiling fields on: MIG instances, and GPUs without instances.
func (s *session) profiled() []entity {
	list := slices.Clone(s.instances)
	for _, g := range s.gpus {
		if !slices.ContainsFunc(s.instances, func(in entity) bool { return in.gpu == g.gpu }) {
			list = append(list, g)
		}
	}
	return list
}

// profilingMeans explains a profiling error to the operator.
func profilingMeans(err error) string {
	switch {
	case has(err, stProfilingNotSupported):
		return "these GPUs have none"
	case has(err, stProfilingLibraryError):
		return "another process has the counters: read the dcgm-exporter or the engine that has them"
	case has(err, stModuleNotLoaded):
		return "the engine has not loaded its profiling module; it may have to run as root"
	case has(err, stProfilingMultiPass):
		return "these GPUs cannot count all of them at once"
	}
	return "the engine does not watch them"
}

// watch starts the sampling of fields on entities. It leaves out unknown fields and records refused entities in
// s.refusals; if the engine refuses all entities, watch fails.
func (s *session) watch(fields []*gpu.Field, entities []entityPair) (known []*gpu.Field, err error) {
	fieldGroup, known, err := s.fieldGroup(fields)
	if err != nil {
		return nil, err
	}
	var last error
	refused, err := blame(entities, func(part []entityPair) error {
		last = s.watchGroup(part, fieldGroup)
		return last
	}, ofAnEntity)
	if err == nil && len(refused) == len(entities) {
		err = last
	}
	if err != nil {
		return nil, err
	}
	for _, e := range refused {
		s.refusals = append(s.refusals, refusal{e, fieldGroup})
		s.once(fmt.Sprintf("watch %v %t", e, profiling(fields[0])), "the engine refuses to watch a GPU: it is asked again each minute",
			"entity_group", e.Group, "entity", e.ID, "profiling", profiling(fields[0]))
	}
	return known, nil
}

// watchRefused retries the refused watches.
func (s *session) watchRefused() error {
	var err error
	before := len(s.refusals)
	s.refusals = slices.DeleteFunc(s.refusals, func(r refusal) bool {
		again := s.watchGroup([]entityPair{r.entity}, r.fieldGroup)
		if dead(again) {
			err = again
		}
		return again == nil
	})
	if err == nil && len(s.refusals) < before {
		err = s.describe()
	}
	return err
}

// ofAnEntity reports whether a single entity can have caused the error.
func ofAnEntity(err error) bool {
	return !dead(err) && !has(err, stVersionMismatch, stFunctionNotFound, stMaxLimit, stDuplicateKey,
		stModuleNotLoaded, stProfilingLibraryError, stProfilingMultiPass)
}

// watchGroup watches the fields on a new group of entities.
func (s *session) watchGroup(entities []entityPair, fieldGroup uintptr) error {
	var group uintptr
	name := s.name()
	err := s.call("dcgmGroupCreate", func() int32 { return s.library.GroupCreate(s.handle, groupEmpty, name, &group) })
	if err != nil {
		return err
	}
	for _, e := range entities {
		err = errors.Join(err, s.call("dcgmGroupAddEntity", func() int32 { return s.library.GroupAddEntity(s.handle, group, e.Group, e.ID) }))
	}
	if err == nil {
		keep := keepPeriods * s.options.Interval
		err = s.call("dcgmWatchFields", func() int32 {
			return s.library.Watch(s.handle, group, fieldGroup, s.options.Interval.Microseconds(), keep.Seconds(), keepPeriods)
		})
	}
	if err != nil && !dead(err) {
		// An engine supports 64 groups for all its clients together.
		err = errors.Join(err, s.call("dcgmGroupDestroy", func() int32 { return s.library.GroupDestroy(s.handle, group) }))
	}
	return err
}

// fieldGroup creates a field group of the fields that the engine knows.
func (s *session) fieldGroup(fields []*gpu.Field) (group uintptr, known []*gpu.Field, err error) {
	create := func(part []*gpu.Field) error {
		name, ids := s.name(), numbers(part)
		return s.call("dcgmFieldGroupCreate", func() int32 {
			return s.library.FieldsCreate(s.handle, int32(len(ids)), &ids[0], name, &group)
		})
	}
	unknown, err := blame(fields, func(part []*gpu.Field) error {
		err := create(part)
		if err == nil && len(part) < len(fields) {
			err = s.call("dcgmFieldGroupDestroy", func() int32 { return s.library.FieldsDestroy(s.handle, group) })
		}
		return err
	}, unknownField)
	if err != nil || len(unknown) == 0 {
		return group, fields, err
	}
	s.lacks(unknown)
	known = without(fields, unknown)
	if len(known) == 0 {
		return 0, nil, errors.New("the engine knows none of the fields")
	}
	return group, known, create(known)
}

// unknownField reports whether an unknown field can have caused the error.
func unknownField(err error) bool { return has(err, stBadParam, stGenericError, stUnknownField) }

// lacks logs fields that the engine does not know.
func (s *session) lacks(fields []*gpu.Field) {
	for _, f := range fields {
		s.once(fmt.Sprintf("field %d", f.ID), "the engine does not know a field: it is older than 4.6, or lacks what is behind it",
			"field", f.ID, "name", f.Name)
	}
}

func without(fields, some []*gpu.Field) []*gpu.Field {
	return slices.DeleteFunc(slices.Clone(fields), func(f *gpu.Field) bool { return slices.Contains(some, f) })
}

func numbers(fields []*gpu.Field) []uint16 {
	ids := make([]uint16, len(fields))
	for i, f := range fields {
		ids[i] = f.ID
	}
	return ids
}

// blame finds the members of list for which try fails, by bisection. try must fail for any list with such a member,
// with an error for which isGuilt is true. Any other error ends the search.
func blame[T any](list []T, try func([]T) error, isGuilt func(error) bool) ([]T, error) {
	err := try(list)
	switch {
	case err == nil:
		return nil, nil
	case !isGuilt(err):
		return nil, err
	case len(list) == 1:
		return slices.Clone(list), nil
	}
	left, err := blame(list[:len(list)/2], try, isGuilt)
	if err != nil {
		return nil, err
	}
	right, err := blame(list[len(list)/2:], try, isGuilt)
	return append(left, right...), err
}
