package security_test

import (
	"strings"
	"testing"

	"replayd/test/outside"
)

// badConfigs returns configurations with a fault beside a secret, on the same line, or in the secret.
func badConfigs(good string) map[string]string {
	bad := map[string]string{}
	target := func(name, keys string) {
		bad[name] = "targets:\n- name: a\n  url: http://127.0.0.1:1\n" + keys + "\nworkloads: [{name: w, trace: {path: trace.jsonl}}]\n"
	}
	s := word("secret")
	target("a bad type beside it", "  idle: [1]\n  http: {authorization: {credentials: "+s+"}}")
	target("an unknown key beside it", "  http: {authorization: {credentials: "+s+", credential: 1}}")
	target("it is a list", "  http: {authorization: {credentials: ["+s+"]}}")
	target("it is where a section belongs", "  http: {authorization: "+s+"}")
	target("likewise, for a user", "  http: {basic_auth: "+s+"}")
	target("http is it", "  http: "+s)
	target("extra_body is it", "  extra_body: "+s)
	target("extra_body is a list", "  extra_body: ["+s+"]")
	target("an alias", "  http: {authorization: {credentials: *"+s+"}}")
	target("a tag", "  http: {authorization: {credentials: !!int "+s+"}}")
	target("a character that cannot begin a text", "  http: {authorization: {credentials: @"+s+"}}")
	target("a quote that is not closed", "  http: {authorization: {credentials: \""+s+"}}")
	target("a brace that is not closed", "  http: {authorization: {credentials: "+s)
	target("a tab", "  http:\n\tauthorization: "+s)
	target("a proxy", "  http: {proxy_url: \"http://me:"+s+"@ho st\"}")
	target("a proxy with a slash in its password", "  http: {proxy_url: \"http://me:"+s+"/@proxy\"}")
	target("a proxy of requests", "  http: {proxy_url: \"http://me:"+s+"@proxy\"}")
	target("a key of TLS", "  http: {tls_config: {cert: abc, key: "+s+"}}")
	target("two ways to prove", "  http: {basic_auth: {username: a, password: "+s+"}, authorization: {credentials: "+s+"}}")
	target("a page's address", "  metrics: {url: \"ftp://me:"+s+"@h\"}")
	target("a page's address in a list", "  metrics: {url: [\"http://me:"+s+"@h\"]}")
	target("a page's port", "  metrics: {url: \"http://me:"+s+"@h:port\"}")
	target("a page's http", "  metrics: {http: {authorization: {credentials: {a: "+s+"}}}}")
	target("two lines", "  http: {http_headers: {X-Key: {secrets: "+s+", values: "+s+"}}}")
	bad["an address with a user"] = "targets: [{name: a, url: \"http://me:" + s + "@h\"}]\nworkloads: [{name: w, trace: {path: trace.jsonl}}]\n"
	bad["an address that cannot be read"] = "targets: [{name: a, url: \"http://me:" + s + "/@h:x\"}]\nworkloads: [{name: w, trace: {path: trace.jsonl}}]\n"
	bad["a mark"] = "targets: [{name: a, url: \"http://h\"}]\nworkloads: [{name: w, trace: {path: trace.jsonl}, request: {headers: {X-Api-Key: [" + s + "]}}}]\n"
	bad["a mark with a line end"] = "targets: [{name: a, url: \"http://h\"}]\nworkloads: [{name: w, trace: {path: trace.jsonl}, request: {headers: {X-Api-Key: \"" + s + `\nb"}}}]` + "\n"
	bad["GPUs"] = "targets: [{name: a, url: \"http://h\"}]\nworkloads: [{name: w, trace: {path: trace.jsonl}}]\ngpus: [{dcgm_exporter: \"me:" + s + "@h\", http: {basic_auth: " + s + "}}]\n"
	bad["only it"] = s
	bad["targets is it"] = "targets: " + s
	bad["a key twice"] = "drain: 1s\ndrain: 2s # " + s
	if good != "" {
		bad["the good one with a fault"] = strings.Replace(good, `"drain":"1s"`, `"drain":"soon","lanes":3`, 1)
		bad["the good one cut"] = good[:len(good)*2/3]
	}
	return bad
}

// No error about a configuration or a credentials file repeats a secret.
func TestConfigErrorsKeepSecrets(t *testing.T) {
	dir := t.TempDir()
	outside.Write(t, dir, "trace.jsonl", trace)
	for name, text := range badConfigs("") {
		outside.Write(t, dir, "replayd.yaml", text)
		said, code := command(t, dir, nil, "serve", "--config", "replayd.yaml", "--web.listen-address", "127.0.0.1:0", "--log.level", "debug")
		if code != 2 || !strings.Contains(said, "replayd: ") {
			t.Errorf("%s: want exit code 2, got %d: %s", name, code, said)
		}
		clean(t, "serve, "+name, said)
		said, _ = command(t, dir, nil, "check-config", "replayd.yaml")
		clean(t, "check-config, "+name, said)
	}
	s := word("secret")
	for _, text := range []string{
		"authorization: " + s, "authorization: {credentials: [" + s + "]}", "authorization: {credentials: *" + s + "}", "basic_auth: {password: !!int " + s + "}", s,
		"proxy_url: \"http://me:" + s + "@ho st\"", "authorization: {credentials: \"" + s,
	} {
		outside.Write(t, dir, "client.yaml", text)
		for _, args := range [][]string{
			{"run", "trace.jsonl", "--url", "127.0.0.1:1", "--http.config.file", "client.yaml"},
			{"health", "127.0.0.1:1", "--http.config.file", "client.yaml"},
			{"pause", "ftp://me:" + s + "@h"},
			{"run", "trace.jsonl", "--url", "http://me:" + s + "@h"},
			{"run", "trace.jsonl", "--url", "http://me:" + s + "/@h:x"},
		} {
			said, code := command(t, dir, nil, args...)
			if code != 2 {
				t.Errorf("%v with %s: want exit code 2, got %d: %s", args, text, code, said)
			}
			clean(t, args[0]+" with "+text, said)
		}
	}
}
