package openai

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// SessionMark stands for the id of the session in the value of a request header.
const SessionMark = "{session}"

// checkMarks returns why the braces in a header's value are refused. Those of a JSON object stand for themselves.
func checkMarks(value string) error {
	for {
		_, after, found := strings.Cut(value, "{")
		if !found {
			return nil
		}
		json := strings.TrimLeft(after, " ")
		if !strings.HasPrefix("{"+after, SessionMark) && !strings.HasPrefix(json, `"`) && !strings.HasPrefix(json, "}") {
			return errors.New("want " + SessionMark + ", or braces of a JSON object, got other braces")
		}
		value = after
	}
}

// NamesSession reports whether requests carry the id of their session.
func (m *RequestFields) NamesSession() bool {
	if m.SessionField != "" {
		return true
	}
	for _, value := range m.Headers {
		if strings.Contains(value, SessionMark) {
			return true
		}
	}
	return false
}

var bodyKey = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// ownFields are keys of the body that replayd sets to something else than a text of the user's choice.
var ownFields = []string{
	"model", "messages", "prompt", "tools", "stream", "stream_options", "max_tokens", "max_completion_tokens", "min_tokens", "ignore_eos",
}

// CheckSessionField returns why no session's id can be sent under a key of the body.
func CheckSessionField(key string) error {
	switch {
	case !bodyKey.MatchString(key):
		return errors.New("want 1 to 64 of A-Z a-z 0-9 _ . -")
	case slices.Contains(ownFields, key):
		return fmt.Errorf("%s is set by replayd", key)
	}
	return nil
}
