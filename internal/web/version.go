package web

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxVersion is the most bytes of a candidate's version: a label of Kubernetes has 63, an image's tag 128, a name 253.
const maxVersion = 253

// candidateVersion returns the version that the query of a restart names, "" for none: as version=TEXT, or as
// version_key=KEY, the key of the body's JSON object that has it. Any other parameter is rejected: with a typo each
// retry of a rollout would begin the evidence anew.
func candidateVersion(w http.ResponseWriter, r *http.Request) (string, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(query) == 0 {
		return "", err
	}
	named, keyed := query["version"], query["version_key"]
	if len(query) > 1 || len(named)+len(keyed) != 1 {
		return "", fmt.Errorf("want version=TEXT or version_key=KEY once, or nothing, got %q", query.Encode())
	}
	field, version := "version", ""
	if keyed != nil {
		field = "body: " + keyed[0]
		if version, err = textOf(http.MaxBytesReader(w, r.Body, maxForm), keyed[0]); err != nil {
			return "", err
		}
	} else {
		version = named[0]
	}
	hidden := func(c rune) bool { return !unicode.IsPrint(c) }
	printable := utf8.ValidString(version) && !strings.ContainsFunc(version, hidden)
	if version == "" || len(version) > maxVersion || !printable {
		return "", fmt.Errorf("%s: want 1 to %d bytes of printable text, got %d bytes: %.60q",
			field, maxVersion, len(version), version)
	}
	return version, nil
}

// textOf returns the text at a key of a JSON object.
func textOf(body io.Reader, key string) (text string, err error) {
	var object map[string]json.RawMessage
	if err := json.NewDecoder(body).Decode(&object); err != nil {
		return "", fmt.Errorf("body: want a JSON object: %w", err)
	}
	if err := json.Unmarshal(object[key], &text); err != nil || object[key][0] != '"' {
		return "", fmt.Errorf("body: want text at the key %.60q", key)
	}
	return text, nil
}
