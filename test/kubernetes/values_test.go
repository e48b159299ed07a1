//go:build real

package kubernetes_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Invalid values are refused before the installation, and the message names the key.
func TestBadValues(t *testing.T) {
	const engine = "target: {url: http://vllm:8000}\n"
	for _, c := range []struct{ values, want string }{
		{"image: {repository: ''}\n" + engine, "image.repository: want the image that you built"},
		{"image: {repository: '', digest: 'sha256:" + strings.Repeat("0", 64) + "'}\n" + engine, "image.repository: want the image"},
		{engine + "mode: job\njob: {start: ''}", "job.start: want an instant some minutes ahead, at which all 2 shards begin, such as --set job.start=$(date -u -d '+5 min' +%Y-%m-%dT%H:%M:00Z)"},
		{engine + "prometheusRule: {enabled: true, disabled: [ReplaydOverload, ReplaydOverlaod]}", `got "ReplaydOverlaod"`},
		{engine + "initContainers: [{image: a}]", "/initContainers/0"},
		{engine + "canary: {request: {headers: {X-Token: hush}}}", "canary.request.headers.X-Token: want no secret"},
		{"", "target.url: want the address of the engine, such as http://vllm:8000"},
		{"mode: job", "target.url: want the address"},
		{engine + "mode: daemonset", "/mode"},
		{engine + "mod: deployment", "'mod' not allowed"},
		{engine + "trace: {claim: x}", "'claim' not allowed"},
		{"target: {url: vllm:8000}", "/target/url"},
		{"target: {url: http://user:secret@vllm}", "/target/url"},
		{engine + "config: {drain: 30}", "/config/drain"},
		{engine + "config: {workload: []}", "workload"},
		{engine + "shards: {count: 0}", "/shards/count"},
		{engine + "job: {start: tomorrow}", "/job/start"},
		{engine + "port: 70000", "/port"},
		{engine + "secrets: [{name: a/b, secretName: x}]", "/secrets/0/name"},
		{engine + "config: {targets: [{name: a, url: http://a}]}", "config.targets: want only one of"},
		{engine + "config: {web: {listen: ':1'}}", "config.web.listen: want the value port"},
		{engine + "terminationGracePeriodSeconds: 30", "terminationGracePeriodSeconds: want more than config.drain (30s), got 30"},
		{engine + "trace: {existingClaim: a}", "trace.file: want the name"},
		{engine + "trace: {existingClaim: a, path: /b, file: c}", "trace: want only one of"},
		{engine + "trace: {file: c}", "trace.file: want trace.existingConfigMap"},
		{engine + "config: {records: {path: /records/x}}", "records: want a volume, an existingClaim or claim.enabled for config.records.path"},
		{engine + "mode: shards\nconfig: {workloads: [{name: a, shard: {index: 0, of: 2}}]}", "config.workloads[0].shard: want shards.count"},
		{engine + "mode: job\nconfig: {workloads: [{name: a}]}", "config: want target.url, trace and job.args in mode job"},
		{engine + "existingConfigMap: a", "want neither target.url nor config"},
		{"existingConfigMap: a", "terminationGracePeriodSeconds: want a number"},
		{"existingConfigMap: a\nexistingSecret: b", "existingSecret: want only one of"},
		{"existingConfigMap: a\nmode: job", "want another mode than job"},
		{"config: {targets: [{name: a, url: http://a}, {name: b, url: http://b}]}", "config.workloads: want workloads beside several"},
		{engine + "networkPolicy: {enabled: true}", "networkPolicy.target.to: want the peers"},
		{engine + "monitor: {enabled: true}\nnetworkPolicy: {enabled: true, target: {to: [{podSelector: {}}]}}", "networkPolicy.metricsFrom: want who scrapes"},
		{"mode: sidecar-example\nnetworkPolicy: {enabled: true}", "networkPolicy.enabled: want another mode"},
		{"mode: sidecar-example\npodDisruptionBudget: {enabled: true}", "podDisruptionBudget.enabled: want another mode"},
		{"mode: sidecar-example\nmonitor: {enabled: true, kind: ServiceMonitor}", "monitor.kind: want PodMonitor"},
		{engine + "dcgmService: {enabled: true}", "dcgmService.enabled: want mode sidecar-example"},
		{engine + "config: {state: {path: /records/state}}", "records: want a volume, an existingClaim or claim.enabled for config.state.path"},
		{engine + "records: {existingClaim: a, claim: {enabled: true}}", "records: want only one of volume, existingClaim and claim.enabled"},
		{"mode: sidecar-example\nrecords: {claim: {enabled: true}}", "records.claim.enabled: want another mode than sidecar-example"},
		{engine + "nameOverride: my_replayd", "/nameOverride"},
		{engine + "nameOverride: replayd-", "/nameOverride"},
		{engine + "fullnameOverride: 1replayd", "/fullnameOverride"},
		{engine + "namespaceOverride: a.b", "/namespaceOverride"},
		{engine + "monitor: {enabled: true, interval: 5s, scrapeTimeout: 10s}", "monitor.scrapeTimeout: want at most the interval (5s), got 10s"},
		{engine + "monitor: {enabled: true, interval: 1m30s, endpoint: {scrapeTimeout: 2m}}", "monitor.scrapeTimeout: want at most the interval (1m30s), got 2m"},
		{engine + "monitor: {interval: 5}", "/monitor/interval"},
		{engine + "monitor: {interval: ''}", "/monitor/interval"},
		{engine + "monitor: {interval: null}", "'/monitor'"},
		{engine + "monitor: {interval: 0s}", "/monitor/interval"},
		{engine + "monitor: {interval: 30s1m}", "/monitor/interval"},
		{engine + "monitor: {scrapeTimeout: 1.5s}", "/monitor/scrapeTimeout"},
		{engine + "extraVolumes: [{emptyDir: {}}]", "/extraVolumes/0"},
		{engine + "extraVolumeMounts: [{name: a}]", "/extraVolumeMounts/0"},
		{engine + "service: {port: 0}", "/service/port"},
		{engine + "service: {nodePort: 30080}", "service.nodePort: want the type NodePort or LoadBalancer"},
		{engine + "mode: shards\nservice: {type: NodePort}", "service: want type, port and nodePort in mode deployment only"},
		{engine + "config: {comparisons: [{name: rollout}]}", "/config/comparisons/0"},

		// Secrets must not come into a ConfigMap, wherever they are.
		{"config: {targets: [{name: a, url: http://a, http: {authorization: {credentials: hush}}}]}", "config.targets[0].http.authorization.credentials: want no secret"},
		{"config: {targets: [{name: a, url: http://a, http: {basic_auth: {username: a, password: hush}}}]}", "config.targets[0].http.basic_auth.password"},
		{"config: {targets: [{name: a, url: http://a, http: {bearer_token: hush}}]}", "config.targets[0].http.bearer_token"},
		{"config: {targets: [{name: a, url: http://a, http: {http_headers: {X-Api-Key: {values: [hush]}}}}]}", "config.targets[0].http.http_headers.X-Api-Key"},
		{"config: {targets: [{name: a, url: http://a, http: {http_headers: {X-Tenant: {secrets: [hush]}}}}]}", "http_headers.X-Tenant.secrets"},
		{"config: {targets: [{name: a, url: http://a, http: {oauth2: {client_id: a, client_secret: hush}}}]}", "config.targets[0].http.oauth2.client_secret"},
		{"config: {targets: [{name: a, url: http://a, http: {oauth2: {token_url: 'http://u:hush@a'}}}]}", "http.oauth2.token_url: want an address without"},
		{"config: {targets: [{name: a, url: http://a, extra_body: {first_token: hush}}]}", "config.targets[0].extra_body.first_token"},
		{"config: {targets: [{name: a, url: http://a, extra_body: {api_key: hush}}]}", "config.targets[0].extra_body.api_key"},
		{"config: {targets: [{name: a, url: http://a, metrics: {url: 'http://u:hush@a'}}]}", "config.targets[0].metrics.url: want an address without"},
		{engine + "config: {workloads: [{name: a, request: {headers: {X-Token: hush}}}]}", "config.workloads[0].request.headers.X-Token"},
		{engine + "config: {gpus: [{dcgm_exporter: http://a, http: {authorization: {credentials: hush}}}]}", "config.gpus[0].http.authorization.credentials"},
	} {
		out, said, err := helm(t, "template", "canary", chart, "-f", write(t, "required.yaml", "image: {repository: a}\njob: {start: '"+jobStart+"'}"), "-f", write(t, "values.yaml", c.values))
		if err == nil || !strings.Contains(said, c.want) {
			t.Errorf("%q: want %q, got %v: %s", c.values, c.want, err, said)
		}
		if strings.Contains(out, "hush") {
			t.Errorf("%q: the secret is in what is rendered", c.values)
		}
	}
}

// External configurations, and words that only sound like secrets, are accepted.
func TestGoodValues(t *testing.T) {
	for _, values := range []string{
		"existingConfigMap: a\nterminationGracePeriodSeconds: 60",
		"existingSecret: a\nterminationGracePeriodSeconds: 60\nmode: shards",
		"mode: sidecar-example",
		"target: {url: http://a/v}\nconfig: {workloads: [{name: a, trace: {block_tokens: auto}, prompt: {form: tokens}, budget: {prompt_tokens_per_hour: 2000000}}]}",
		"config: {targets: [{name: a, url: http://a, extra_body: {stop_token_ids: [1], max_tokens: 5}, http: {authorization: {credentials_file: /x}, http_headers: {X-Api-Key: {files: [/x]}}}}]}",
		"config: {targets: [{name: a, url: http://a, timeouts: {first_token: 60s}, http: {oauth2: {client_id: a, client_secret_file: /x, token_url: https://a/token}}}]}",
		"target: {url: http://a}\ntrace: {path: /data/x.jsonl}\nextraVolumes: [{name: d, emptyDir: {}}]\nextraVolumeMounts: [{name: d, mountPath: /data}]",
		"target: {url: http://a}\nmode: job\njob: {start: 'next:5m'}\nrecords: {volume: {emptyDir: {}}}",
		"target: {url: http://a}\nmode: job\njob: {start: '', shards: 1}",
		"target: {url: http://a}\ncanary: {speed: 0.5, slo: null}",
		"config: {targets: [{name: a, url: http://a}, {name: b, url: http://b}], workloads: [{name: chat, target: a}], comparisons: [{name: rollout, workload: chat, candidate: b}], state: {path: /records/state}}\nrecords: {volume: {emptyDir: {}}}",
		"target: {url: http://a}\nnetworkPolicy: {enabled: true, target: {to: [{podSelector: {}}]}}",
		"target: {url: http://a}\nmonitor: {enabled: true, labels: null}\ncommonLabels: null\npodLabels: null\npodAnnotations: null",
		"target: {url: http://a}\nserviceAccount: {create: false}\nglobal: {x: 1}",
	} {
		hold(t, render(t, chart, append(required, "-f", write(t, "values.yaml", values))...))
	}
}

// The configurations of the documentation work in the chart, and replayd accepts the result.
func TestDocumentedConfigurations(t *testing.T) {
	_, begins, _ := strings.Cut(read(t, repository+"/docs/how-to/sidecar.md"), "```yaml\n")
	sidecar, _, _ := strings.Cut(begins, "```\n")
	for name, text := range map[string]string{"replayd.example.yaml": read(t, repository+"/docs/replayd.example.yaml"), "sidecar.md": sidecar} {
		var config map[string]any
		decode(t, []byte(text), &config)
		delete(config, "web") // the chart sets web.listen
		values, err := yaml.Marshal(map[string]any{"config": config})
		if err != nil {
			t.Fatal(err)
		}
		text := render(t, chart, append(required, "-f", write(t, "values.yaml", string(values)))...)
		rendered := configMap(t, objects(t, text), "canary-replayd", "replayd.yaml")
		if !strings.Contains(rendered, "name: vllm\n") {
			t.Errorf("%s: want its target, got\n%s", name, rendered)
		}
		accepted(t, "0", rendered)
	}
}

// The README's values for a restricted namespace, for records and for a large trace hold to the standards.
func TestDocumentedValues(t *testing.T) {
	for begin, has := range map[string][]string{
		"# a restricted namespace\n": {"kind: NetworkPolicy", "policyTypes: [Ingress, Egress] ingress: - from:", names +
			"- to:"},
		"# records and state on a claim\n": {"- mountPath: /records name: records", "resources: requests: {storage: 20Gi}"},
		"# a trace that is fetched\n":      {"initContainers: - args: - --fail", "- --output - /data/conversation_trace.jsonl"},
	} {
		_, begins, _ := strings.Cut(read(t, chart+"/README.md"), begin)
		values, _, found := strings.Cut(begins, "```\n")
		if !found {
			t.Fatalf("README: want values after %s", begin)
		}
		for _, mode := range []string{"deployment", "shards", "job"} {
			text := render(t, chart, append(plain(mode), "-f", write(t, "values.yaml", values))...)
			hold(t, text)
			for _, want := range has {
				if !strings.Contains(flat(text), want) {
					t.Errorf("%s: want %q in\n%s", mode, want, text)
				}
			}
		}
	}
}

// The table in the chart's README has every value with its default, and so does the schema.
func TestTableOfValues(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal([]byte(read(t, chart+"/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	var defaults map[string]any
	decode(t, []byte(read(t, chart+"/values.yaml")), &defaults)
	want := map[string]any{}
	flatten(t, "", schema, defaults, want)

	got := map[string]any{}
	for line := range strings.Lines(read(t, chart+"/README.md")) {
		cells := strings.Split(line, " | ")
		key, ok := strings.CutPrefix(cells[0], "| `")
		if !ok || len(cells) != 3 {
			continue
		}
		key = strings.TrimSuffix(key, "`")
		var value any
		decode(t, []byte(strings.Trim(cells[1], "`")), &value)
		if _, twice := got[key]; twice || strings.TrimSpace(strings.Trim(cells[2], "|\n")) == "" {
			t.Errorf("%s: want one row, with a meaning", key)
		}
		got[key] = value
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value, ok := got[key]; !ok || !reflect.DeepEqual(value, want[key]) {
			t.Errorf("README: %s: want %v, got %v", key, want[key], value)
		}
		delete(got, key)
	}
	for key := range got {
		t.Errorf("README: %s is no value of the chart", key)
	}
}

// flatten collects the values that the schema does not divide further. Values and schema must have the same keys.
func flatten(t *testing.T, at string, schema map[string]any, value any, into map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	if len(properties) == 0 || at == "config." {
		into[strings.TrimSuffix(at, ".")] = value
		return
	}
	object, _ := value.(map[string]any)
	for key := range object {
		if properties[key] == nil {
			t.Errorf("values.schema.json: want %s%s, which values.yaml has", at, key)
		}
	}
	for key, p := range properties {
		v, ok := object[key]
		if !ok {
			t.Errorf("values.yaml: want %s%s, which values.schema.json has", at, key)
		}
		if ok {
			flatten(t, at+key+".", p.(map[string]any), v, into)
		}
	}
}
