package config

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/fault"
	"replayd/internal/secret"
)

const sesame = "open-sesame"

// Every field with a secret type, in this package and in prometheus/common, is masked; every other text is shown.
func TestShowHidesWhatIsSecretByType(t *testing.T) {
	var c Config
	var secrets, open []string
	plant(t, reflect.ValueOf(&c).Elem(), "config", &secrets, &open)
	text := shown(t, c)
	for _, place := range secrets {
		if strings.Contains(text, sesame+place) {
			t.Errorf("%s is in the open", place)
		}
	}
	if strings.Contains(text, sesame) {
		t.Error("a secret is in the open")
	}
	for _, place := range open {
		if !strings.Contains(text, place) {
			t.Errorf("%s is not shown", place)
		}
	}
	// basic_auth, authorization, oauth2 (2), bearer_token, tls_config.key (also of oauth2), two proxies with headers, a
	// header. More means that prometheus/common has a new field; fewer means that the walk is incomplete.
	if len(secrets) < 11 || len(open) < 20 {
		t.Errorf("want 11 secrets and more, and 20 other texts and more, got %q, %q", secrets, open)
	}
	if t.Failed() {
		t.Log(text)
	}
}

// plant sets every field to a unique text.
func plant(t *testing.T, v reflect.Value, at string, secrets, open *[]string) {
	t.Helper()
	secret := func() string { *secrets = append(*secrets, at); return sesame + at }
	switch p := v.Addr().Interface().(type) {
	case *commoncfg.Secret:
		*p = commoncfg.Secret(secret())
		return
	case *commoncfg.URL:
		p.URL = &url.URL{Scheme: "http", User: url.UserPassword(secret(), sesame), Host: "proxy"}
		return
	case *Bounds: // Bounds show numbers only
		return
	case *map[string]any:
		*p = map[string]any{"a": map[any]any{"api_key": secret()}}
		return
	case *map[string]string:
		*p = map[string]string{"api_key": secret()}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		plant(t, v.Elem(), at, secrets, open)
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() && field.Tag.Get("koanf") != "-" {
				plant(t, value, at+"."+field.Name, secrets, open)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		plant(t, v.Index(0), at+".0", secrets, open)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		plant(t, value, at+".X-A", secrets, open)
		v.SetMapIndex(reflect.ValueOf("X-A"), value)
	case reflect.String:
		*open = append(*open, at+".")
		v.SetString(at + ".")
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint16, reflect.Uint64, reflect.Float64, reflect.Array:
	default:
		t.Fatalf("%s: a %v", at, v.Type())
	}
}

// A secret-like key has a masked type, unless it names a file. A tokenizer's tokens are no secrets.
func TestSecretKeysHaveSecretTypes(t *testing.T) {
	for _, section := range []reflect.Type{reflect.TypeFor[Config](), reflect.TypeFor[Target](), reflect.TypeFor[Workload]()} {
		var walk func(s reflect.Type, at string)
		walk = func(s reflect.Type, at string) {
			for field := range s.Fields() {
				key := field.Tag.Get("koanf")
				switch {
				case field.Type == reflect.TypeFor[HTTP]() || key == "-" || key == "tokenizer":
				case field.Type.Kind() == reflect.Struct:
					walk(field.Type, fault.Join(at, key))
				case field.Type == reflect.TypeFor[string]() && secret.IsName(key) && !strings.HasSuffix(key, "_file"):
					t.Errorf("%s: want prometheus/common's Secret, got a string", fault.Join(at, key))
				}
			}
		}
		walk(section, section.Name())
	}
}

func TestShowMasksByName(t *testing.T) {
	show := func(body map[string]any, headers map[string]commoncfg.Header, address string) Target {
		t.Helper()
		target := DefaultTarget()
		target.Name, target.URL, target.ExtraBody = "a", address, body
		target.HTTP.HTTPHeaders = &commoncfg.Headers{Headers: headers}
		text := shown(t, Config{Targets: []Target{target}})
		if strings.Contains(text, sesame) {
			t.Errorf("a secret is in the open:\n%s", text)
		}
		return readBack(t, text).Targets[0]
	}
	// Common vLLM request fields are not masked.
	open := map[string]any{
		"max_tokens": json.Number("16"), "min_tokens": json.Number("0"), "stop_token_ids": []any{json.Number("1"), json.Number("2e3")},
		"skip_special_tokens": true, "tokens": nil, "temperature": json.Number("0.50"),
		"chat_template_kwargs": map[string]any{"enable_thinking": false}, "stop": []any{"a", "b"},
	}
	if d := cmp.Diff(open, show(open, nil, "http://h").ExtraBody); d != "" {
		t.Errorf("-given +shown\n%s", d)
	}
	for _, key := range []string{
		"api_key", "apiKey", "KEY", "keys", "token", "Hf_Token", "access-token", "tokens", "token_list", "client_secret", "secrets", "password",
		"PASSWORDS", "credentials", "aws_credential", "Authorization", "authorization_header", "secret_token_count",
	} {
		for _, value := range []any{sesame, []any{sesame, 1}, map[string]any{"a": sesame}} {
			body := map[string]any{"a": []any{map[string]any{key: value}}}
			want := map[string]any{"a": []any{map[string]any{key: secret.Mask}}}
			if d := cmp.Diff(want, show(body, nil, "http://h").ExtraBody); d != "" {
				t.Errorf("%s: -want +got\n%s", key, d)
			}
		}
	}
	for _, key := range []string{"password", "pin_token", "key", "max_token"} { // digits can be a secret
		if got := show(map[string]any{key: json.Number("123456")}, nil, "http://h").ExtraBody[key]; got != secret.Mask {
			t.Errorf("%s: want it masked, got %v", key, got)
		}
	}
	got := show(nil, map[string]commoncfg.Header{
		"X-Api-Key": {Values: []string{sesame, sesame}, Files: []string{"key.txt"}}, "X-Team": {Values: []string{"search"}, Secrets: []commoncfg.Secret{sesame}},
	}, "http://h").HTTP.HTTPHeaders.Headers
	want := map[string]commoncfg.Header{
		"X-Api-Key": {Values: []string{secret.Mask, secret.Mask}, Files: []string{"key.txt"}}, "X-Team": {Values: []string{"search"}, Secrets: []commoncfg.Secret{secret.Mask}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("headers: -want +got\n%s", d)
	}
	for given, want := range map[string]string{
		"http://" + sesame + "@h/a@b":                   "http://xxxxx@h/a@b",
		"http://me:" + sesame + "@h:8000/v1":            "http://xxxxx@h:8000/v1",
		"http://me:" + sesame + "@" + sesame + "@h":     "http://xxxxx@h",
		"http://[::1]:8000/?mail=a@b":                   "http://[::1]:8000/?mail=a@b",
		"see ftp://" + sesame + ":@h, http://u:p@h now": "see ftp://xxxxx@h, http://xxxxx@h now",
	} {
		if got := show(map[string]any{"link": given}, nil, given); got.URL != want || got.ExtraBody["link"] != want {
			t.Errorf("%s: want %s, got %s, %v", given, want, got.URL, got.ExtraBody)
		}
	}
}

// Show must not change the configuration, from which requests are built.
func TestShowChangesNothing(t *testing.T) {
	target := DefaultTarget()
	target.ExtraBody = map[string]any{"key": sesame}
	target.HTTP.HTTPHeaders = &commoncfg.Headers{Headers: map[string]commoncfg.Header{"X-Key": {Values: []string{sesame}}}}
	params, claims := map[string]string{"key": sesame}, map[string]any{"key": sesame}
	target.HTTP.OAuth2 = &commoncfg.OAuth2{EndpointParams: params, Claims: claims}
	shown(t, Config{Targets: []Target{target}})
	if target.ExtraBody["key"] != sesame || target.HTTP.HTTPHeaders.Headers["X-Key"].Values[0] != sesame || params["key"] != sesame || claims["key"] != sesame {
		t.Errorf("got %v, %v, %v, %v", target.ExtraBody, target.HTTP.HTTPHeaders, params, claims)
	}
}
