//go:build real

package kubernetes_test

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	documents "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// An object is one document of a manifest.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	text              []byte
}

func objects(t *testing.T, manifests string) (all []object) {
	t.Helper()
	r := documents.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	for {
		text, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := yaml.YAMLToJSONStrict(text); err != nil { // a duplicate key: helm accepts it, others do not
			t.Fatalf("%v:\n%s", err, text)
		}
		o := object{text: text}
		decode(t, text, &o)
		if o.Kind != "" { // otherwise only comments
			all = append(all, o)
		}
	}
	if len(all) == 0 {
		t.Fatal("want objects, got none")
	}
	return all
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
}

// one returns the object of a kind whose name has a suffix. There must be exactly one.
func one[T any](t *testing.T, all []object, kind, suffix string) (o T) {
	t.Helper()
	found := 0
	for _, candidate := range all {
		if candidate.Kind == kind && strings.HasSuffix(candidate.Name, suffix) {
			found++
			decode(t, candidate.text, &o)
		}
	}
	if found != 1 {
		t.Fatalf("want one %s …%s, got %d", kind, suffix, found)
	}
	return o
}

func count(all []object, kind string) (n int) {
	for _, o := range all {
		if o.Kind == kind {
			n++
		}
	}
	return n
}

// templates returns the pods that the objects create. There must be some.
func templates(t *testing.T, all []object) (pods []corev1.PodTemplateSpec) {
	t.Helper()
	for _, o := range all {
		switch o.Kind {
		case "Deployment":
			var d appsv1.Deployment
			decode(t, o.text, &d)
			pods = append(pods, d.Spec.Template)
		case "StatefulSet":
			var s appsv1.StatefulSet
			decode(t, o.text, &s)
			pods = append(pods, s.Spec.Template)
		case "Job":
			var j batchv1.Job
			decode(t, o.text, &j)
			pods = append(pods, j.Spec.Template)
		case "DaemonSet", "CronJob", "Pod", "ReplicaSet":
			t.Fatalf("a pod of a kind that this test does not look into: %s %s", o.Kind, o.Name)
		}
	}
	if len(pods) == 0 {
		t.Fatal("want a pod, got none")
	}
	return pods
}

// replayd returns the container of that name, and whether it is an init container.
func replayd(t *testing.T, pod corev1.PodSpec) (c corev1.Container, first bool) {
	t.Helper()
	for _, c := range pod.InitContainers {
		if c.Name == "replayd" {
			return c, true
		}
	}
	for _, c := range pod.Containers {
		if c.Name == "replayd" {
			return c, false
		}
	}
	t.Fatal("want a container replayd, got none")
	return c, false
}
