package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"replayd/internal/openai"
)

// Every key of a text is known to name a file or not, so that a new key cannot be forgotten.
func TestFilesOfEveryKey(t *testing.T) {
	var full Config
	fill(reflect.ValueOf(&full).Elem())
	var files []string
	for _, f := range full.Files() {
		if f.Key != "" {
			files = append(files, strings.ReplaceAll(f.Key, "[0]", "[]"))
		}
	}
	http := []string{
		"authorization.credentials_file", "basic_auth.password_file", "basic_auth.username_file", "bearer_token_file", "http_headers.x.files[]",
		"oauth2.client_certificate_key_file", "oauth2.client_secret_file", "oauth2.tls_config.ca_file", "oauth2.tls_config.cert_file",
		"oauth2.tls_config.key_file", "tls_config.ca_file", "tls_config.cert_file", "tls_config.key_file",
	}
	want := []string{"gpus[].nvidia_smi", "records.path", "state.path", "targets[].tokenizer", "web.config_file", "workloads[].dataset.path", "workloads[].trace.path"}
	for _, section := range []string{"gpus[].http", "targets[].http", "targets[].metrics.http", "targets[].router.http"} {
		for _, key := range http {
			want = append(want, section+"."+key)
		}
	}
	slices.Sort(files)
	slices.Sort(want)
	if !slices.Equal(files, want) {
		t.Errorf("the keys of files are\n%s\nwant\n%s", strings.Join(files, "\n"), strings.Join(want, "\n"))
	}
	words := map[string]bool{}
	eachText(reflect.ValueOf(full), "", func(key string, _ reflect.Value) {
		if !namesFile(key) {
			words[key[strings.LastIndexByte(key, '.')+1:]] = true
		}
	})
	others := strings.Fields(`align allowed_hosts[0] api arrival as audience bearer_token ca ca_ref cache_salt candidate cert
		cert_ref client_certificate_key client_certificate_key_id client_certificate_key_ref client_id client_secret client_secret_ref
		connections credentials credentials_ref cron dashboards_url dcgm_exporter echo_header endpoint_path external_url family form
		format grant_type headers[0] host_header input iss key key_ref lengths libdcgm listen mode model name namespace no_proxy
		on_missing_metrics output over_limit overlap overload password password_ref pod pods[0] proxy_url rate_of replica_header replicas
		require retry runbook_url salt scopes[0] secrets[0] server server_name session session_field signature_algorithm target timestamp
		timezone token_url type unit url user username username_ref uuid[0] values[0] words workload`)
	got := slices.Sorted(maps.Keys(words))
	for _, word := range got {
		if !slices.Contains(others, word) {
			t.Errorf("%s: say in namesFile or here whether this key names a file", word)
		}
	}
	for _, word := range others {
		if !words[word] {
			t.Errorf("%s: no key", word)
		}
	}
}

// fill gives every text of a section a value, and every list one entry.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Pointer:
		if v.Type() != reflect.TypeFor[*Places]() {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.Struct {
			one := reflect.New(v.Type().Elem()).Elem()
			fill(one)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("x"), one)
		}
	}
}

func TestFilesOfOneConfiguration(t *testing.T) {
	c := Config{
		State:   State{Path: "state"},
		Targets: []Target{{Tokenizer: "Qwen/Qwen3-0.6B", Options: openai.Options{ExtraBody: map[string]any{"path": "no file"}}}},
		Places:  &Places{file: "replayd.yaml"},
	}
	got, want := fmt.Sprint(c.Files()), "[{ replayd.yaml} {targets[0].tokenizer Qwen/Qwen3-0.6B} {state.path state}]"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
