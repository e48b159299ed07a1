package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestMarkBounds(t *testing.T) {
	headers := func(n int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprintf("X-%d", i)] = "a"
		}
		return all
	}
	for _, c := range []struct {
		request Request
		want    string // the only fault; "": none
	}{
		{Request{}, ""},
		{Request{CacheSalt: "none"}, ""},
		{Request{CacheSalt: "fixed:a", User: strings.Repeat("u", maxRequestUser), Headers: headers(maxRequestHeaders)}, ""},
		{Request{CacheSalt: "Loop"}, `w.request.cache_salt: want loop, session, none or fixed:NAME, got "Loop"`},
		{Request{User: strings.Repeat("u", maxRequestUser+1)}, "w.request.user: want at most 256 bytes, got 257"},
		{Request{Headers: headers(maxRequestHeaders + 1)}, "w.request.headers: want at most 16 headers, got 17"},
		{Request{Headers: map[string]string{"a\nb": "c"}}, `w.request.headers: want a header name, got "a\nb"`},
	} {
		var faults Faults
		c.request.check("w.request", &faults)
		got := ""
		for _, f := range faults {
			got += f.Path + ": " + f.Want
		}
		if got != c.want {
			t.Errorf("%+v: want %q, got %q", c.request, c.want, got)
		}
	}
}

// Reload compares requests by value: the same section is equal, and another priority or none is a change.
func TestRequestFieldsOfAReload(t *testing.T) {
	mark := func(priority string) Workload {
		return readBack(t, "workloads: [{name: w, request: {priority: "+priority+", headers: {X-A: b}}}]").Workloads[0]
	}
	if !reflect.DeepEqual(mark("0"), mark("0")) {
		t.Error("a section that was read twice differs")
	}
	for _, other := range []string{"1", "null", "-9223372036854775808"} {
		if reflect.DeepEqual(mark("0"), mark(other)) {
			t.Errorf("priority 0 and %s are the same", other)
		}
	}
}
