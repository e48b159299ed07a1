package config

import (
	"encoding/json"
	"maps"
	"reflect"
)

// Differences returns the fields of a struct that differ from those of another of its type, as encoding/json has them. A field that a
// later version adds is no difference as long as it has its default.
func Differences(of, from any) (map[string]any, error) {
	var fields [2]map[string]any
	for i, v := range []any{of, from} {
		text, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(text, &fields[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return differences(fields[0], fields[1]), nil
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
