package cli

import (
	"maps"
	"testing"
)

// The flags of session affinity are run's own, and --session-header is also AIPerf's. A header with the id of the session is no credential,
// whatever its name.
func TestSessionFlags(t *testing.T) {
	for line, who := range map[string]Spelling{
		"trace.jsonl --url h:1 --session-header x-smg-routing-key":                                 Own,
		"--url h:1 --isl 5 --session-header x-smg-routing-key":                                     AIPerf,
		"--url h:1 --isl 5 --header x-smg-routing-key:{session} --header x-api-key:sesame-{other}": AIPerf,
	} {
		o, err := ordered(t, line+" --session-field session_id --echo-header x-session-token --replica-header x-replica")
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		r, target := o.Config.Workloads[0].Request, o.Config.Targets[0]
		if o.Who != who || r.SessionField != "session_id" || r.EchoHeader != "x-session-token" || target.Replica != "x-replica" {
			t.Errorf("%s: got %s, %+v, %q", line, o.Who, r, target.Replica)
		}
		if want := map[string]string{"x-smg-routing-key": "{session}"}; !maps.Equal(r.Headers, want) {
			t.Errorf("%s: want headers %v, got %v", line, want, r.Headers)
		}
	}
}

func TestSessionFlagFaults(t *testing.T) {
	for flags, want := range map[string]string{
		`--session-header "a b"`:                 `--session-header: want a header name, got "a b"`,
		"--session-field model":                  "--session-field: model is set by replayd",
		"--echo-header host":                     "--echo-header: Host is set by replayd",
		"--echo-header x-a --session-header x-a": "--echo-header: contradicts headers.x-a: want one of them",
		"--replica-header set-cookie":            "--replica-header: want a header with the name of a replica, got Set-Cookie",
		"--session-header x-request-id":          "--session-header: X-Request-Id is set by replayd",
		"--header x-a:{row}":                     "--header: x-a: want {session}, or braces of a JSON object, got other braces",
		"--session-header x-a --header x-a:b":    "--session-header: contradicts --header x-a: want one of them",
		"--session-header x-a --header X-A:b":    "--session-header: want each header once, got X-A and x-a",
	} {
		if _, err := ordered(t, "--url h:1 --isl 5 "+flags); err == nil || err.Error() != want {
			t.Errorf("%s: want %q, got %v", flags, want, err)
		}
	}
}
