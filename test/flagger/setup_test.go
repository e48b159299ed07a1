//go:build real

// Package flagger_test judges deploy/flagger with Flagger's own code: its controller on a Kubernetes API in memory,
// its load tester, and its Prometheus provider, which asks a real Prometheus that scrapes played comparisons: `make
// suite NAME=test-rollouts`. It is a module of its own, so that the product does not depend on Flagger.
package flagger_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	flaggerv1 "github.com/fluxcd/flagger/pkg/apis/flagger/v1beta1"
	"github.com/fluxcd/flagger/pkg/canary"
	"github.com/fluxcd/flagger/pkg/client/clientset/versioned/fake"
	informers "github.com/fluxcd/flagger/pkg/client/informers/externalversions"
	"github.com/fluxcd/flagger/pkg/controller"
	"github.com/fluxcd/flagger/pkg/loadtester"
	"github.com/fluxcd/flagger/pkg/metrics/observers"
	"github.com/fluxcd/flagger/pkg/notifier"
	"github.com/fluxcd/flagger/pkg/router"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"replayd/test/rollouts"
)

const folder = "../../deploy/flagger/"

// load reads one object, with some of its text replaced. A key that its type does not know is an error.
func load[T any](t *testing.T, file string, replace ...string) (o *T) {
	t.Helper()
	data, err := os.ReadFile(folder + file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("%s: want %q in it", file, replace[i])
		}
		text = strings.ReplaceAll(text, replace[i], replace[i+1])
	}
	o = new(T)
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return o
}

// A cluster is a Kubernetes API in memory with Flagger's controller.
type cluster struct {
	kube    *kubefake.Clientset
	flagger *fake.Clientset
	logger  *zap.SugaredLogger
}

func newCluster() cluster {
	c := cluster{kubefake.NewSimpleClientset(), fake.NewSimpleClientset(), zap.NewNop().Sugar()}
	// The pods of every Deployment are ready at once.
	ready := func(action kubetesting.Action) (bool, runtime.Object, error) {
		d := action.(interface{ GetObject() runtime.Object }).GetObject().(*appsv1.Deployment)
		n := int32(1)
		if d.Spec.Replicas != nil {
			n = *d.Spec.Replicas
		}
		d.Status = appsv1.DeploymentStatus{Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
		return false, nil, nil
	}
	c.kube.PrependReactor("create", "deployments", ready)
	c.kube.PrependReactor("update", "deployments", ready)
	return c
}

// start runs the controller until the test ends. What is in the cluster then is what it begins with.
func (c cluster) start(t *testing.T, prometheus string) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(c.flagger, 0)
	watched := controller.Informers{
		CanaryInformer: factory.Flagger().V1beta1().Canaries(),
		MetricInformer: factory.Flagger().V1beta1().MetricTemplates(),
		AlertInformer:  factory.Flagger().V1beta1().AlertProviders(),
	}
	observer, err := observers.NewFactory(prometheus)
	if err != nil {
		t.Fatal(err)
	}
	tracker := &canary.ConfigTracker{Logger: c.logger, KubeClient: c.kube, FlaggerClient: c.flagger}
	own := controller.NewController(c.kube, c.flagger, watched, time.Second, c.logger, &notifier.NopNotifier{},
		canary.NewFactory(c.kube, c.flagger, tracker, []string{"app"}, []string{""}, c.logger),
		router.NewFactory(nil, c.kube, c.flagger, "", "", c.logger, c.flagger, true),
		observer, flaggerv1.IstioProvider, "test", "", "", false)
	stop := t.Context().Done()
	watched.MetricInformer.Informer() // the factory starts those that were asked for
	watched.AlertInformer.Informer()
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	go func() { _ = own.Run(2, stop) }() // it returns when stop is closed
}

// deploy gives a namespace a Deployment with an image.
func (c cluster) deploy(t *testing.T, namespace, image string) {
	t.Helper()
	labels := map[string]string{"app": "vllm"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "vllm", Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "vllm", Image: image}}},
			},
		},
	}
	api := c.kube.AppsV1().Deployments(namespace)
	_, err := api.Create(t.Context(), d, metav1.CreateOptions{})
	if err != nil { // it is there
		if d, err = api.Get(t.Context(), "vllm", metav1.GetOptions{}); err == nil {
			d.Spec.Template.Spec.Containers[0].Image = image
			_, err = api.Update(t.Context(), d, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// status returns that of the Canary of a namespace.
func (c cluster) status(ctx context.Context, namespace string) (flaggerv1.CanaryStatus, error) {
	one, err := c.flagger.FlaggerV1beta1().Canaries(namespace).Get(ctx, "vllm", metav1.GetOptions{})
	if err != nil {
		return flaggerv1.CanaryStatus{}, err
	}
	return one.Status, nil
}

// reach waits for a phase. Failed and Succeeded are the last ones.
func (c cluster) reach(t *testing.T, namespace string, want flaggerv1.CanaryPhase, within time.Duration) flaggerv1.CanaryStatus {
	t.Helper()
	var s flaggerv1.CanaryStatus
	rollouts.Until(t, within, func() (err error) {
		if s, err = c.status(t.Context(), namespace); err == nil && s.Phase != want {
			err = fmt.Errorf("%s: want %s, got %s with %d failed checks", namespace, want, s.Phase, s.FailedChecks)
			if s.Phase == flaggerv1.CanaryPhaseFailed || s.Phase == flaggerv1.CanaryPhaseSucceeded {
				t.Fatal(err)
			}
		}
		return err
	})
	return s
}

// startLoadTester serves the tasks of Flagger's load tester, among them bash.
func startLoadTester(t *testing.T) (url string) {
	t.Helper()
	logger := zap.NewNop().Sugar()
	tasks := loadtester.HandleNewTask(logger, loadtester.NewTaskRunner(logger, 10*time.Second), loadtester.NewAuthorizer(nil))
	s := httptest.NewServer(http.HandlerFunc(tasks))
	t.Cleanup(s.Close)
	return s.URL
}
