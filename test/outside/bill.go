package outside

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// HoldBill checks that a bill of materials in CycloneDX' form lists Go and every module of a binary, each with its version.
func HoldBill(t *testing.T, binary, bill string) {
	t.Helper()
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(bill)
	if err != nil {
		t.Fatal(err)
	}
	var parts struct {
		BOMFormat  string
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(text, &parts); err != nil || parts.BOMFormat != "CycloneDX" {
		t.Fatalf("%s: want CycloneDX, got %q, %v", bill, parts.BOMFormat, err)
	}
	want, got := []string{"std " + info.GoVersion}, []string{}
	for _, m := range info.Deps {
		want = append(want, m.Path+" "+m.Version)
	}
	for _, c := range parts.Components {
		got = append(got, c.Name+" "+c.Version)
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 20 || !slices.Equal(want, got) {
		t.Errorf("%s: want the modules of the binary\n%v\ngot\n%v", bill, want, got)
	}
}
