//go:build real

// Package argo_test judges deploy/argo-rollouts with Argo Rollouts' own code: its validation, its analysis controller on a
// Kubernetes API in memory, and its providers, which ask a real Prometheus that scrapes played comparisons: `make
// test-rollouts`. It is a module of its own, so that the product does not depend on Argo Rollouts.
package argo_test

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/analysis"
	"github.com/argoproj/argo-rollouts/controller/metrics"
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/pkg/client/clientset/versioned/fake"
	informers "github.com/argoproj/argo-rollouts/pkg/client/informers/externalversions"
	"github.com/argoproj/argo-rollouts/utils/queue"
	"github.com/argoproj/argo-rollouts/utils/record"
	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/yaml"
)

const folder = "../../deploy/argo-rollouts/"

func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard) // each measurement is several lines
	os.Exit(m.Run())
}

// load reads one object. A key that its type does not know is an error.
func load[T any](t *testing.T, file string) (o *T) {
	t.Helper()
	text, err := os.ReadFile(folder + file)
	if err != nil {
		t.Fatal(err)
	}
	o = new(T)
	if err := yaml.UnmarshalStrict(text, o); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if bytes.Contains(text, []byte("\n---")) {
		t.Fatalf("%s: want one object", file)
	}
	return o
}

// metric returns a metric of a list.
func metric(t *testing.T, all []v1alpha1.Metric, name string) *v1alpha1.Metric {
	t.Helper()
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	t.Fatalf("want a metric %s in %v", name, all)
	return nil
}

const namespace = "inference"

// A controller is Argo Rollouts' controller of AnalysisRuns.
type controller struct{ client *fake.Clientset }

// startController runs it until the test ends.
func startController(t *testing.T) controller {
	t.Helper()
	c := controller{fake.NewSimpleClientset()}
	kube := kubefake.NewSimpleClientset()
	argo, core := informers.NewSharedInformerFactory(c.client, 0), kubeinformers.NewSharedInformerFactory(kube, 0)
	runs := argo.Argoproj().V1alpha1().AnalysisRuns()
	own := analysis.NewController(analysis.ControllerConfig{
		KubeClientSet: kube, ArgoProjClientset: c.client, AnalysisRunInformer: runs, JobInformer: core.Batch().V1().Jobs(),
		AnalysisRunWorkQueue: workqueue.NewNamedRateLimitingQueue(queue.DefaultArgoRolloutsRateLimiter(), "AnalysisRuns"),
		MetricsServer:        metrics.NewMetricsServer(metrics.ServerConfig{K8SRequestProvider: &metrics.K8sRequestsCountProvider{}}),
		Recorder:             record.NewFakeEventRecorder(),
	})
	ctx := t.Context()
	argo.Start(ctx.Done())
	core.Start(ctx.Done())
	argo.WaitForCacheSync(ctx.Done())
	core.WaitForCacheSync(ctx.Done())
	go func() { _ = own.Run(ctx, 4) }() // it returns when ctx is done
	return c
}

func (c controller) create(t *testing.T, run *v1alpha1.AnalysisRun) {
	t.Helper()
	if _, err := c.client.ArgoprojV1alpha1().AnalysisRuns(namespace).Create(t.Context(), run, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// ended waits for the end of a run.
func (c controller) ended(t *testing.T, name string, within time.Duration) *v1alpha1.AnalysisRun {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(within); ; <-tick.C {
		run, err := c.client.ArgoprojV1alpha1().AnalysisRuns(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if run.Status.Phase.Completed() {
			return run
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: want an end within %v, got %+v", name, within, run.Status)
		}
	}
}
