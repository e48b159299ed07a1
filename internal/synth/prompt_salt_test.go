package synth

import (
	"testing"
	"time"
)

func TestSaltsAreApart(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	seen := map[uint64]string{}
	add := func(name string, v uint64) {
		if other, ok := seen[v]; ok {
			t.Errorf("%s and %s are the same salt %x", name, other, v)
		}
		seen[v] = name
	}
	add("none", SaltNone.At("a", at, 0))
	add("loop", SaltLoop.At("a", at, 0))
	add("next loop", SaltLoop.At("a", at.Add(time.Hour), 0))
	add("a second later", SaltLoop.At("a", at.Add(time.Second), 0))
	add("other workload", SaltLoop.At("b", at, 0))
	add("before 1970", SaltLoop.At("a", time.Unix(-1_700_000_000, 0), 0))
	add("second pass", SaltLoop.At("a", at, 1))
	add("third pass", SaltLoop.At("a", at, 2))
	add("fixed:a", Salt("fixed:a").At("a", at, 0))
	add("fixed:b", Salt("fixed:b").At("a", at, 0))

	for _, s := range []Salt{SaltNone, "fixed:a"} {
		if s.At("a", at, 0) != s.At("b", at.Add(time.Hour), 3) {
			t.Errorf("%s depends on workload, loop or pass", s)
		}
	}
	if SaltLoop.At("a", at, 0) != SaltLoop.At("a", at.Add(999*time.Millisecond).In(time.FixedZone("", 3600)), 0) {
		t.Error("the salt of a loop depends on more than its second")
	}
	// The first 8 bytes of `printf 'loop\0a\0%s' 1700000000 | sha256sum`, and of `printf 'fixed\0a' | sha256sum`.
	if got, want := SaltLoop.At("a", at, 0), uint64(0x48418020f7e885b8); got != want {
		t.Errorf("loop of workload a: %#x, want %#x", got, want)
	}
	if got, want := Salt("fixed:a").At("", at, 0), uint64(0x23debdb841421e73); got != want {
		t.Errorf("fixed:a: %#x, want %#x", got, want)
	}
}

func TestSaltCheck(t *testing.T) {
	for _, s := range []Salt{SaltLoop, SaltNone, "fixed:x", "fixed:a b"} {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []Salt{"", "Loop", "fixed", "fixed:", "NAME"} {
		err := s.Check()
		if want := `want loop, none or fixed:NAME, got "` + string(s) + `"`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A cache_salt differs where the salt of the prompts differs. Its 256 bits are not those of the prompts' salt.
func TestSaltText(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	seen := map[string]string{}
	for name, text := range map[string]string{
		"loop": SaltLoop.Text("a", at, 0), "next loop": SaltLoop.Text("a", at.Add(time.Hour), 0), "other workload": SaltLoop.Text("b", at, 0),
		"second pass": SaltLoop.Text("a", at, 1), "third pass": SaltLoop.Text("a", at, 2),
		"fixed:a": Salt("fixed:a").Text("a", at, 0), "fixed:b": Salt("fixed:b").Text("a", at, 0),
	} {
		if len(text) != 43 || seen[text] != "" {
			t.Errorf("%s and %q: want 43 characters of their own, got %q", name, seen[text], text)
		}
		seen[text] = name
	}
	if got := SaltNone.Text("a", at, 0); got != "" {
		t.Errorf("none: want nothing, got %q", got)
	}
	if Salt("fixed:a").Text("a", at, 0) != Salt("fixed:a").Text("b", at.Add(time.Hour), 3) {
		t.Error("fixed:a depends on workload, loop or pass")
	}
	if SaltLoop.Text("a", at, 0) != SaltLoop.Text("a", at.Add(999*time.Millisecond), 0) {
		t.Error("the salt of a loop depends on more than its second: shards would not agree")
	}
	// printf 'cache\0loop\0a\0%s' 1700000000 | openssl dgst -sha256 -binary | basenc --base64url
	if got, want := SaltLoop.Text("a", at, 0), "G73dhi_PPKCZ4ImXLMESvhdf-JVoyQMgKOq-MlES5Fg"; got != want {
		t.Errorf("loop of workload a: want %s, got %s", want, got)
	}
}
