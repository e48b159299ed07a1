package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
)

const rawBill = `{"bomFormat": "CycloneDX", "metadata": {"tools": [{"name": "cyclonedx-gomod", "hashes": [{"alg": "MD5", "content": "HASH"}]}],
 "component": {"name": "replayd", "evidence": {"licenses": []}}, "properties": [{"name": "cdx:gomod:binary:hash:SHA-256", "value": "1"}]},
 "components": [{"name": "a", "version": "COMPONENT"}]}`

// A bill does not depend on the machine that compiled the tool. Another content has another serial number.
func TestSettledBill(t *testing.T) {
	of := func(hash, component string) []byte {
		t.Helper()
		text, err := settled([]byte(strings.NewReplacer("HASH", hash, "COMPONENT", component).Replace(rawBill)), testTime)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := of("1", "v1")
	if again := of("2", "v1"); !bytes.Equal(first, again) {
		t.Errorf("want equal bills, got\n%s\n%s", first, again)
	}
	var bill struct {
		SerialNumber string
		Metadata     struct {
			Timestamp  time.Time
			Properties []struct{ Value string }
			Component  struct {
				Licenses []struct{ License struct{ ID string } }
			}
		}
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(first, &bill); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(bill.SerialNumber) {
		t.Errorf("want a UUID of version 8, got %s", bill.SerialNumber)
	}
	m := bill.Metadata
	if licenses := m.Component.Licenses; !m.Timestamp.Equal(testTime) || len(m.Properties) != 1 || len(licenses) != 1 || licenses[0].License.ID != "Apache-2.0" {
		t.Errorf("want the commit's time, the binary's hash and the license, got %+v", m)
	}
	if len(bill.Components) != 1 || bill.Components[0].Version != "v1" {
		t.Errorf("want the components as they are, got %+v", bill.Components)
	}
	if other := of("1", "v2"); strings.Contains(string(other), bill.SerialNumber) {
		t.Errorf("want another serial number for another content, got %s", bill.SerialNumber)
	}
	for _, bad := range []string{"", "[]", "{}", `{"bomFormat": "CycloneDX"}`} {
		if text, err := settled([]byte(bad), testTime); err == nil {
			t.Errorf("%q: want it refused, got %s", bad, text)
		}
	}
}
