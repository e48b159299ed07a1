//go:build real

package kubernetes_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// A set is some values beside the target and the image, with texts that its manifests must have and must not have.
type set struct {
	name, values string
	has, lacking []string
}

const scraped = "port: http-replayd scheme: http scrapeTimeout: "

var sets = []set{
	{"a name", "nameOverride: my-replayd", []string{"name: canary-my-replayd namespace: test"}, nil},
	{"a whole name", "fullnameOverride: load", []string{"kind: Service metadata: name: load namespace: test"}, nil},
	{
		"a namespace", "namespaceOverride: loads\nmonitor: {enabled: true}",
		[]string{"kind: Deployment metadata: name: canary-replayd namespace: loads", "matchNames: - loads"},
		[]string{"namespace: test"},
	},
	{
		"a namespace for an exporter",
		"mode: sidecar-example\nnamespaceOverride: loads\ndcgmService: {enabled: true}",
		[]string{"select: namespace: loads", "namespace: gpu-operator"},
		[]string{"namespace: test"},
	},
	{
		"a registry", "image: {registry: mirror.example.com/llm, repository: replayd, tag: x}",
		[]string{"image: mirror.example.com/llm/replayd:x "},
		nil,
	},
	{
		"a registry in the place of another", "image: {registry: mirror.example.com}",
		[]string{"image: mirror.example.com/replayd:x "},
		[]string{"registry.example.com"},
	},
	{
		"a registry of all charts",
		"global: {imageRegistry: 'all:5000'}\nimage: {registry: one, digest: 'sha256:" + strings.Repeat("0", 64) + "'}",
		[]string{"image: all:5000/replayd@sha256:0"},
		nil,
	},
	{
		"scraped often", "monitor: {enabled: true, interval: 5s}",
		[]string{"- honorLabels: true interval: 5s " + scraped + "5s "},
		nil,
	},
	{
		"scraped seldom", "monitor: {enabled: true, interval: 1m30s}",
		[]string{"- honorLabels: true interval: 1m30s " + scraped + "10s "},
		nil,
	},
	{
		"a timeout as long as the interval", "monitor: {enabled: true, interval: 1m30s, scrapeTimeout: 90s}",
		[]string{"- honorLabels: true interval: 1m30s " + scraped + "90s "},
		nil,
	},
	{
		"the interval in the endpoint",
		"monitor: {enabled: true, kind: ServiceMonitor, endpoint: {interval: 2s500ms}}",
		[]string{"endpoints: - honorLabels: true interval: 2s500ms " + scraped + "2s500ms "},
		nil,
	},
	{
		"keys that the monitor has",
		"monitor: {enabled: true, endpoint: {scheme: https, path: /x}, " +
			"spec: {jobLabel: x, scrapeClassicHistograms: false, namespaceSelector: {any: true}}}",
		[]string{
			"path: /x", "scheme: https", "jobLabel: x", "scrapeClassicHistograms: false", "namespaceSelector: any: true",
		},
		[]string{"scheme: http ", "matchNames"},
	},
	{
		"a volume tmp", "extraVolumes: [{name: tmp, emptyDir: {sizeLimit: 1Gi}}]",
		[]string{"emptyDir: sizeLimit: 1Gi name: tmp", "- mountPath: /tmp name: tmp"},
		[]string{"emptyDir: {}"},
	},
	{
		"a volume at /tmp",
		"extraVolumes: [{name: big, emptyDir: {}}]\nextraVolumeMounts: [{name: big, mountPath: /tmp}]",
		[]string{"- mountPath: /tmp name: big"},
		[]string{"- mountPath: /tmp name: tmp"},
	},
	{
		"all volumes of the chart",
		"mode: shards\ntrace: {path: ''}\nsecrets: [{name: key, secretName: a}]\n" +
			"records: {existingClaim: a}\nextraVolumes: [" +
			"{name: config, emptyDir: {}}, {name: trace, emptyDir: {}}, {name: tmp, emptyDir: {}}, " +
			"{name: secret-key, emptyDir: {}}, {name: records, emptyDir: {}}]",
		[]string{"volumes: - emptyDir: {} name: config - emptyDir: {} name: trace"},
		[]string{"secretName:", "claimName:"},
	},
	{
		"an environment",
		"mode: shards\nrecords: {existingClaim: a}\nextraEnv: [{name: POD_NAME, value: x}]\n" +
			"extraEnvFrom: [{secretRef: {name: proxy, optional: true}}]",
		[]string{"env: - name: POD_NAME value: x", "envFrom: - secretRef: name: proxy optional: true"},
		[]string{"fieldPath: metadata.name"},
	},
	{
		"annotations of the workload", "annotations: {reloader.stakater.com/auto: 'true'}",
		[]string{"annotations: reloader.stakater.com/auto: \"true\" spec: replicas: 1 "},
		nil,
	},
	{
		"annotations of shards", "mode: shards\nannotations: {a: b}\ncommonAnnotations: {a: c, d: e}",
		[]string{"annotations: a: b d: e spec: replicas: 2 ", "annotations: a: c d: e spec: clusterIP: None"},
		nil,
	},
	{
		"annotations of a job", "mode: job\nannotations: {a: b}\ncommonAnnotations: {helm.sh/resource-policy: x}",
		[]string{"annotations: a: b helm.sh/resource-policy: x spec: completionMode", "helm.sh/resource-policy: keep"},
		nil,
	},
	{
		"further objects",
		"extraObjects:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Release.Name }}-a'}}\n" +
			"- |\n  apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: {{ include \"replayd.fullname\" . }}-b\n",
		[]string{"kind: ConfigMap metadata: name: 'canary-a' ", "kind: ConfigMap metadata: name: canary-replayd-b "},
		nil,
	},
	{
		"a claim that is there", "records: {existingClaim: kept}\nconfig: {state: {path: /records/state}}",
		[]string{"persistentVolumeClaim: claimName: kept", "- mountPath: /records name: records", "type: Recreate"},
		[]string{"kind: PersistentVolumeClaim"},
	},
	{
		"a claim of shards that is there", "mode: shards\nrecords: {existingClaim: kept}",
		[]string{"persistentVolumeClaim: claimName: kept", "subPathExpr: $(POD_NAME)"},
		[]string{"volumeClaimTemplates"},
	},
	{
		"a claim of a job that is there", "mode: job\nrecords: {existingClaim: kept}",
		[]string{"persistentVolumeClaim: claimName: kept"},
		[]string{"kind: PersistentVolumeClaim"},
	},
	{
		"a claim",
		"records: {claim: {enabled: true, storageClassName: fast}}\n" +
			"config: {records: {path: /records/x.jsonl}, state: {path: /records/state}}",
		[]string{
			"kind: PersistentVolumeClaim metadata: name: canary-replayd-records", "helm.sh/resource-policy: keep",
			"accessModes: - ReadWriteOnce storageClassName: fast resources: requests: {storage: 10Gi}",
			"persistentVolumeClaim: claimName: canary-replayd-records", "- mountPath: /records name: records",
			"type: Recreate",
		},
		nil,
	},
	{
		"a claim for each shard",
		"mode: shards\nrecords: {claim: {enabled: true, accessModes: [ReadWriteOncePod], size: 1Gi}}\n" +
			"config: {records: {path: /records/x.jsonl}}",
		[]string{
			"volumeClaimTemplates: - apiVersion: v1 kind: PersistentVolumeClaim metadata: name: records labels: " +
				"app.kubernetes.io/name: \"replayd\" app.kubernetes.io/instance: \"canary\" spec: accessModes: " +
				"- ReadWriteOncePod resources: requests: {storage: 1Gi}",
			"- mountPath: /records name: records",
		},
		[]string{"subPathExpr", "POD_NAME", "persistentVolumeClaim:"},
	},
	{
		"a claim of a job", "mode: job\nrecords: {claim: {enabled: true}}",
		[]string{"kind: PersistentVolumeClaim", "accessModes: - ReadWriteMany resources:"},
		nil,
	},
	{
		"names and hosts",
		"dnsPolicy: None\ndnsConfig: {nameservers: [10.0.0.10]}\nhostAliases: [{ip: 10.0.0.1, hostnames: [vllm]}]",
		[]string{"dnsPolicy: None", "nameservers: - 10.0.0.10", "hostAliases: - hostnames: - vllm ip: 10.0.0.1"},
		nil,
	},
	{
		"a runtime", "mode: job\nruntimeClassName: gvisor\npriorityClassName: high",
		[]string{"runtimeClassName: gvisor", "priorityClassName: high"},
		nil,
	},
	{
		"a life",
		"mode: shards\nlifecycle: {preStop: {sleep: {seconds: 5}}}\n" +
			"startupProbe: {httpGet: {path: /-/healthy, port: http-replayd}, failureThreshold: 30}\nrevisionHistoryLimit: 0",
		[]string{"lifecycle: preStop: sleep: seconds: 5", "startupProbe: failureThreshold: 30", "revisionHistoryLimit: 0 "},
		nil,
	},
	{
		"a port of the nodes",
		"service: {type: NodePort, port: 80, nodePort: 30080, labels: {a: b}, annotations: {c: d}}",
		[]string{
			"labels: a: b app.kubernetes.io/component: deployment", "annotations: c: d spec: type: NodePort ",
			"port: 80, nodePort: 30080, targetPort: http-replayd, protocol: TCP}", "containerPort: 9797",
		},
		nil,
	},
	{"a balancer", "service: {type: LoadBalancer}", []string{"type: LoadBalancer ", "port: 9797, targetPort:"}, nil},
	{
		"room on the node", "resources: {requests: {ephemeral-storage: 1Gi}, limits: {ephemeral-storage: 2Gi}}",
		[]string{"limits: ephemeral-storage: 2Gi memory: 256Mi requests: cpu: 100m ephemeral-storage: 1Gi"},
		nil,
	},
	{
		"weeks", "mode: job\njob: {activeDeadlineSeconds: 1209600, ttlSecondsAfterFinished: 2419200}",
		[]string{"activeDeadlineSeconds: 1209600 ttlSecondsAfterFinished: 2419200 "},
		nil,
	},
	{
		"everything beside an engine",
		"mode: sidecar-example\nannotations: {a: b}\nextraEnvFrom: [{configMapRef: {name: a}}]\nrevisionHistoryLimit: 3\n" +
			"extraVolumes: [{name: tmp, emptyDir: {medium: Memory}}]\nrecords: {existingClaim: a}\ndnsPolicy: Default\n" +
			"lifecycle: {preStop: {sleep: {seconds: 1}}}\nimage: {registry: r}\nextraContainers: [{name: a, image: a, " +
			"securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]",
		[]string{"annotations: a: b spec: replicas: 1 revisionHistoryLimit: 3 ", "medium: Memory", "image: r/replayd:x"},
		nil,
	},
	{"a parent's switch", "enabled: true", []string{"kind: Deployment"}, nil},
}

// Every set of values makes objects that an API server takes.
func TestSets(t *testing.T) {
	for _, s := range sets {
		t.Run(s.name, func(t *testing.T) {
			const short = "trace.path=/data/trace.jsonl,image.tag=x" // without the sample's text
			values := append(plain("deployment"), "--set", short, "-f", write(t, "values.yaml", s.values))
			if mode, _, found := strings.Cut(s.values, "\n"); found && strings.HasPrefix(mode, "mode: ") {
				values[1] = strings.Replace(mode, ": ", "=", 1)
			}
			manifests := render(t, chart, values...)
			hold(t, manifests)
			taken(t, manifests)
			text := flat(manifests)
			has(t, text, s.has...)
			for _, lacking := range s.lacking {
				if strings.Contains(text, lacking) {
					t.Errorf("want no %q in\n%s", lacking, text)
				}
			}
		})
	}
}

// taken checks what an API server refuses although it is in no schema: bad names, and items of a list with one name.
func taken(t *testing.T, manifests string) {
	t.Helper()
	all := objects(t, manifests)
	for _, o := range all {
		bad := validation.IsDNS1123Subdomain(o.Name)
		if o.Kind == "Service" {
			bad = validation.IsDNS1035Label(o.Name)
		}
		for _, value := range o.Labels {
			bad = append(bad, validation.IsValidLabelValue(value)...)
		}
		if len(bad) > 0 {
			t.Errorf("%s %s %v: %v", o.Kind, o.Name, o.Labels, bad)
		}
	}
	for _, pod := range templates(t, all) {
		c, _ := replayd(t, pod.Spec)
		var names []string
		for _, v := range pod.Spec.Volumes {
			names = append(names, "volume "+v.Name)
		}
		for _, m := range c.VolumeMounts {
			names = append(names, "mount "+m.MountPath)
		}
		for _, e := range c.Env {
			names = append(names, "variable "+e.Name)
		}
		slices.Sort(names)
		if once := slices.Compact(slices.Clone(names)); len(once) != len(names) {
			t.Errorf("want each once, got %q", names)
		}
	}
}

// The chart as a dependency that its parent turns on and off, under its name and another.
func TestDependency(t *testing.T) {
	parent := t.TempDir()
	copied(t, filepath.Join(parent, "charts", "replayd"))
	const text = `apiVersion: v2
name: stack
version: 1.0.0
dependencies:
  - {name: replayd, version: ">0.0.0", repository: "", condition: replayd.enabled}
  - {name: replayd, version: ">0.0.0", repository: "", condition: second.enabled, alias: second}
`
	if err := os.WriteFile(filepath.Join(parent, "Chart.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const own = ", target: {url: 'http://vllm:8000'}, image: {repository: replayd, tag: x}, monitor: {enabled: true}}\n"
	for _, c := range []struct {
		first, second string
		want          []string
	}{
		{"true", "false", []string{"canary-replayd"}},
		{"false", "true", []string{"canary-second"}},
		{"true", "true", []string{"canary-replayd", "canary-second"}},
		{"false", "false", nil},
	} {
		values := "replayd: {enabled: " + c.first + own + "second: {enabled: " + c.second + own +
			"global: {imageRegistry: mirror.example.com, other: 1}\n"
		manifests := render(t, parent, "-f", write(t, "values.yaml", values))
		if c.want == nil {
			if strings.TrimSpace(manifests) != "" {
				t.Errorf("off: want nothing, got\n%s", manifests)
			}
			continue
		}
		hold(t, manifests)
		taken(t, manifests)
		has(t, flat(manifests), "image: mirror.example.com/replayd:x ")
		var got []string
		for _, o := range objects(t, manifests) {
			if o.Kind == "Deployment" {
				got = append(got, o.Name)
			}
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s, %s: want %q, got %q", c.first, c.second, c.want, got)
		}
	}
}
