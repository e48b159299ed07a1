//go:build real

package kubernetes_test

import (
	"regexp"
	"strings"
	"testing"
)

// A rendering is some values of the chart, with texts that its manifests must have and texts that they must not have.
type rendering struct {
	name    string
	values  []string
	has     []string
	lacking []string
}

const (
	watched = "- --config=/etc/replayd/config/replayd.yaml - --config.watch"
	whole   = "- mountPath: /etc/replayd/config name: config readOnly: true"
	names   = "egress: - ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}, " +
		"{port: 5353, protocol: UDP}, {port: 5353, protocol: TCP}] "
)

var renderings = []rendering{
	{"deployment with everything", full("deployment"), []string{
		"replicas: 1 revisionHistoryLimit: 3 strategy: {type: Recreate}", // two would double the load
		watched, whole, "drain: 1m30s", "terminationGracePeriodSeconds: 120 ",
		"path: /traces/conversation_trace.jsonl", "claimName: traces readOnly: true", "maxUnavailable: 0 ",
		"kubernetes.io/metadata.name: monitoring ports: [{port: 9898, protocol: TCP}] " + names +
			"- to: - namespaceSelector:",
		"- {port: 8000, protocol: TCP}", "- {port: 9400, protocol: TCP}", "- ports: - port: 443 ",
		"kind: ServiceMonitor", "scrapeClassicHistograms: true", "jobLabel: app.kubernetes.io/name", "honorLabels: true",
	}, []string{"-sample", "shard:"}},
	{"deployment", plain("deployment"), []string{
		"replicas: 1 revisionHistoryLimit: 10 strategy: {type: Recreate}", watched, whole, "terminationGracePeriodSeconds: 45 ",
		"path: /traces/sample.jsonl",
		"livenessProbe: httpGet: {path: /-/healthy,", "readinessProbe: httpGet: {path: /-/ready,",
	}, []string{"shard:", "kind: NetworkPolicy"}},
	// rounded up, and 15 s
	{
		"a long drain", append(plain("deployment"), "--set", "config.drain=1h1m1.5s"),
		[]string{"terminationGracePeriodSeconds: 3677 "},
		nil,
	},
	{"shards with everything", full("shards"), []string{
		"kind: StatefulSet", "replicas: 4 revisionHistoryLimit: 10 serviceName: canary-replayd-shards podManagementPolicy: Parallel",
		"name: canary-replayd-shards namespace: test", "clusterIP: None publishNotReadyAddresses: true", watched, whole,
		"maxUnavailable: 1 ",
		"shard: index: auto of: 4 speed: 20 trace: path: /traces/peak.jsonl.gz",
		"shard: index: auto of: 4 trace: from: 10m path: /traces/tail.jsonl",
		"mountPath: /records name: records subPathExpr: $(POD_NAME)", names,
	}, []string{"-sample"}},
	{
		"nobody may scrape",
		append(full("shards"), "--set", "monitor.enabled=false", "--set", "networkPolicy.metricsFrom=null"),
		[]string{"policyTypes: [Ingress, Egress] ingress: [] " + names},
		nil,
	},
	{"job with everything", full("job"), []string{
		"completionMode: Indexed completions: 4 parallelism: 4 backoffLimitPerIndex: 0", "ttlSecondsAfterFinished: 86400",
		"restartPolicy: Never",
		"helm.sh/resource-policy: keep", "minAvailable: 4 ", "terminationGracePeriodSeconds: 45 ",
		"- --shard=auto/4 - --start=2026-01-02T15:04:00Z", "- --records=/records/$(POD_NAME).jsonl ",
		"fieldPath: metadata.name",
	}, []string{"-sample", "backoffLimit:", "kind: ConfigMap metadata: name: canary-replayd namespace"}},
	// The host name of a pod is the Job's and an index, at most 63 characters.
	{"a long name", append(plain("job"), "--set", "fullnameOverride="+strings.Repeat("x", 70)), []string{
		"kind: Job metadata: name: " + strings.Repeat("x", 52) + "-1 ",
	}, []string{"name: " + strings.Repeat("x", 59)}},
	{"sidecar with everything", full("sidecar-example"), []string{
		"url: http://127.0.0.1:8000", "dcgm_exporter: http://canary-replayd-dcgm.monitoring:9400/metrics",
		"name: canary-replayd-dcgm namespace: monitoring", "internalTrafficPolicy: Local",
		"kubectl.kubernetes.io/default-container: engine",
		"initContainers: - restartPolicy: Always name: replayd", watched, "livenessProbe:", "readinessProbe:",
		"terminationGracePeriodSeconds: 45 ",
	}, []string{"startupProbe"}}, // the server would not start while replayd cannot
	{"another engine", append(plain("sidecar-example"), "--set-json",
		`sidecarExample.engine={"name":"vllm","image":"vllm"}`), []string{
		"kubectl.kubernetes.io/default-container: vllm", "containers: - image: vllm name: vllm",
	}, nil},
}

var comments = regexp.MustCompile(`(?m)(^|\s)#.*$`)

// flat joins the lines of manifests, without their comments.
func flat(manifests string) string {
	return strings.Join(strings.Fields(comments.ReplaceAllString(manifests, "")), " ") + " "
}

// Rules and dashboards are of the form of histograms, and of the interval, that the values say.
func TestHistogramsAndInterval(t *testing.T) {
	const nativeRule, nativePanel = "(histogram_sum(rate(replayd_ttft_seconds[5m]))", "(histogram_count(rate(replayd_ttft_seconds{"
	for _, c := range []struct{ values, has, lacking []string }{
		{nil, []string{`"query": "5s,10s,15s,30s,1m"`}, []string{nativeRule, nativePanel}},
		{[]string{"histograms=native", "monitor.interval=30s"}, []string{nativeRule, nativePanel, `"query": "30s"`}, []string{`"query": "5s,10s,15s,30s,1m"`}},
	} {
		values := full("deployment")
		for _, v := range c.values {
			values = append(values, "--set", v)
		}
		text := render(t, chart, values...)
		for _, want := range c.has {
			if !strings.Contains(text, want) {
				t.Errorf("%v: want %s in the chart", c.values, want)
			}
		}
		for _, lacking := range c.lacking {
			if strings.Contains(text, lacking) {
				t.Errorf("%v: want no %s in the chart", c.values, lacking)
			}
		}
	}
}

func TestRenderings(t *testing.T) {
	for _, r := range renderings {
		short := []string{"--set", "dashboards.enabled=false", "--set", "prometheusRule.enabled=false"}
		text := flat(render(t, chart, append(r.values, short...)...))
		for _, want := range r.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: want %q in\n%s", r.name, want, text)
			}
		}
		for _, lacking := range r.lacking {
			if strings.Contains(text, lacking) {
				t.Errorf("%s: want no %q in\n%s", r.name, lacking, text)
			}
		}
	}
}
