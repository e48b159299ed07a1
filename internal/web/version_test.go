package web

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A restart may name the candidate's version, in its query or at a key of its body. Tools ask again and again: the
// answer says whether the evidence begins anew. What is no version restarts nothing.
func TestRestartNamesAVersion(t *testing.T) {
	var calls []string
	s := serve(t, Options{Lifecycle: true, RestartComparison: func(_ context.Context, _, version string) (bool, error) {
		calls = append(calls, version)
		return len(calls) < 2 || calls[len(calls)-2] != version, nil
	}})
	f := func(query, body string, status int, text string) {
		t.Helper()
		a := ask(t, "POST", s.URL()+"/-/comparisons/a/restart"+query, body, "Content-Type", "application/json")
		a.check(t, query+" "+body, status, text)
	}
	begins := func(version string) string { return "Comparison \"a\" begins anew, with version " + version + ".\n" }
	const goesOn = "Comparison \"a\": version 7d4b9 is being judged already: evidence continues.\n"
	f("?version=7d4b9", "", 200, begins("7d4b9"))
	f("?version=7d4b9", "", 200, goesOn)
	f("?version_key=checksum", `{"name": "vllm", "checksum": "7d4b9", "metadata": {"checksum": 1}}`, 200, goesOn)
	f("?version=v1.2%2Bbuild+7", "", 200, begins("v1.2+build 7"))
	long := strings.Repeat("v", maxVersion)
	f("?version="+long, "", 200, begins(long))
	f("?version_key=checksum", `{"checksum": "é"}`, 200, begins("é"))
	f("", `{"checksum": "7d4b9"}`, 200, "Comparison \"a\" begins anew.\n")
	want := []string{"7d4b9", "7d4b9", "7d4b9", "v1.2+build 7", long, "é", ""}

	const once = "want version=TEXT or version_key=KEY once, or nothing, got "
	f("?ver=7d4b9", "", 400, once+"\"ver=7d4b9\"\n")
	f("?version=a&version=b", "", 400, once+"\"version=a&version=b\"\n")
	f("?version=a&version_key=b", "{}", 400, once+"\"version=a&version_key=b\"\n")
	f("?version=%zz", "", 400, "invalid URL escape \"%zz\"\n")
	const bounds = ": want 1 to 253 bytes of printable text, got "
	f("?version=", "", 400, "version"+bounds+"0 bytes: \"\"\n")
	f("?version="+long+"v", "", 400, "version"+bounds+"254 bytes: \""+long[:60]+"\"\n")
	f("?version=a%0Ab", "", 400, "version"+bounds+"3 bytes: \"a\\nb\"\n")
	// The rest of a line would run from right to left.
	f("?version=a%E2%80%AEb", "", 400, "version"+bounds+"5 bytes: \"a\\u202eb\"\n")
	f("?version=%FF", "", 400, "version"+bounds+"1 bytes: \"\\xff\"\n")
	f("?version_key=checksum", `{"checksum": "a\u0000"}`, 400, "body: checksum"+bounds+"2 bytes: \"a\\x00\"\n")
	f("?version_key=checksum", "", 400, "body: want a JSON object: EOF\n")
	for _, body := range []string{"{}", `{"checksum": null}`, `{"checksum": 7}`, `{"checksum": ["a"]}`, `null`} {
		f("?version_key=checksum", body, 400, "body: want text at the key \"checksum\"\n")
	}
	f("?version_key=checksum", `{"checksum": "`+strings.Repeat("a", maxForm)+`"}`,
		400, "body: want a JSON object: http: request body too large\n")
	if d := cmp.Diff(want, calls); d != "" {
		t.Errorf("calls: -want +got\n%s", d)
	}
}
