package config

import (
	"encoding/json"
	"maps"
	"testing"
)

func TestDifferences(t *testing.T) {
	w := DefaultWorkload()
	w.Name, w.Rate, w.Trace.Path, w.Prompt.Seed = "a", 2, "t.jsonl", 7
	got, err := Differences(w, DefaultWorkload())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if want := `{"Name":"a","Prompt":{"Seed":7},"Rate":2,"Trace":{"Path":"t.jsonl"}}`; err != nil || string(text) != want {
		t.Errorf("want %s, got %s, %v", want, text, err)
	}
	if got, err = Differences(DefaultWorkload(), DefaultWorkload()); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}

	// A field of a later version with its default is none.
	type earlier struct{ A int }
	type later struct{ A, B int }
	before, err := Differences(earlier{1}, earlier{0})
	if err != nil {
		t.Fatal(err)
	}
	after, err := Differences(later{1, 5}, later{0, 5})
	if err != nil || len(before) != 1 || !maps.Equal(before, after) {
		t.Errorf("got %v and %v, %v", before, after, err)
	}
}
