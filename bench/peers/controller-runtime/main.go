// The operator of AppService on controller-runtime, to compare the host with: what it writes is what the plugin app-service
// has the host write, to the last label and condition, as long as no Pod runs. Typed objects, informer caches, a write only where something differs,
// and the next look at an object only once the cache has its last write. KUBECONFIG says where. It has no leader election, no
// metrics and no Events: it is as quick as it can be.
package main

import (
	"fmt"
	"os"

	"go.uber.org/zap/zapcore"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	usage = "usage: KUBECONFIG=FILE controller-runtime update|apply\n\n" +
		"  update   change children with PUT, as most operators do\n" +
		"  apply    change children with server-side apply, as the host does\n"
	concurrency = 10
)

func main() {
	if len(os.Args) != 2 || os.Args[1] != "update" && os.Args[1] != "apply" {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(os.Args[1] == "apply"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(apply bool) error {
	ctrl.SetLogger(zap.New(zap.Level(zapcore.WarnLevel)))
	scheme := runtime.NewScheme()
	if err := kubernetes.AddToScheme(scheme); err != nil {
		return err
	}
	addToScheme(scheme)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1 // The API server's own fairness is limit enough.
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metrics.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Client:  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&AppService{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(&reconciler{manager.GetClient(), apply})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
