package config

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"time"

	"replayd/internal/scalar"
)

// Differences returns the fields of a struct that differ from those of another of its type, by their names in Go,
// with values as encoding/json has them and durations as the file has them. Embedded fields are those of the struct
// itself. A field that a later version adds is no difference as long as it has its default.
func Differences(of, from any) (map[string]any, error) {
	var fields [2]map[string]any
	for i, v := range []any{of, from} {
		text, err := json.Marshal(byNames(reflect.ValueOf(v)))
		if err == nil {
			err = json.Unmarshal(text, &fields[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return differences(fields[0], fields[1]), nil
}

// byNames returns a value with maps for its structs.
func byNames(v reflect.Value) any {
	if d, ok := v.Interface().(time.Duration); ok {
		return scalar.Duration(d)
	}
	switch v.Interface().(type) {
	case encoding.TextMarshaler, HTTP: // prometheus/common has names of its own for JSON
		return v.Interface()
	}
	switch v.Kind() {
	case reflect.Struct:
		fields := map[string]any{}
		for field, value := range v.Fields() {
			if !field.IsExported() {
				continue
			}
			if of, ok := byNames(value).(map[string]any); ok && field.Anonymous {
				maps.Copy(fields, of)
			} else {
				fields[field.Name] = byNames(value)
			}
		}
		return fields
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = byNames(v.Index(i))
		}
		return list
	}
	return v.Interface()
}

func differences(of, from map[string]any) map[string]any {
	maps.DeleteFunc(of, func(name string, value any) bool {
		section, isSection := value.(map[string]any)
		other, isToo := from[name].(map[string]any)
		if isSection && isToo {
			return len(differences(section, other)) == 0
		}
		return reflect.DeepEqual(value, from[name])
	})
	return of
}
