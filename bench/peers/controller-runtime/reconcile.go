// One reconcile: the children first, then the status. It deletes nothing; garbage collection does.
package main

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// fieldManager names the fields that are this operator's, where it applies.
const fieldManager = "controller-runtime"

// stale is how long it waits for a cache that was behind.
const stale = 50 * time.Millisecond

type reconciler struct {
	client.Client
	apply bool
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var app AppService
	if err := r.Get(ctx, request.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if app.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	err := r.reconcile(ctx, &app)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: stale}, nil
	}
	return ctrl.Result{}, err
}

func (r *reconciler) reconcile(ctx context.Context, app *AppService) error {
	deployment, err := ensure(ctx, r, app, &appsv1.Deployment{}, setDeployment)
	if err != nil {
		return err
	}
	if _, err = ensure(ctx, r, app, &corev1.Service{}, setService); err != nil {
		return err
	}
	before := app.DeepCopy().Status
	setStatus(app, deployment)
	if equality.Semantic.DeepEqual(before, app.Status) {
		return nil
	}
	return r.Status().Update(ctx, app)
}

// ensure makes a child as it shall be, if the cache does not say that it is.
func ensure[T client.Object](
	ctx context.Context, r *reconciler, app *AppService, empty T, set func(*AppService, T),
) (T, error) {
	completed := func(child T) (T, error) {
		child.SetNamespace(app.Namespace)
		child.SetName(app.Name)
		set(app, child)
		return child, controllerutil.SetControllerReference(app, child, r.Scheme())
	}
	live := empty.DeepCopyObject().(T)
	err := r.Get(ctx, types.NamespacedName{Namespace: app.Namespace, Name: app.Name}, live)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return live, err
	}
	wanted, err := completed(live.DeepCopyObject().(T))
	if err != nil {
		return wanted, err
	}
	switch {
	case !missing && equality.Semantic.DeepEqual(live, wanted):
		return live, nil
	case r.apply:
		// Nothing but what is wanted: whatever else is applied would be this operator's, too.
		fresh, err := completed(empty)
		if err != nil {
			return fresh, err
		}
		kind, err := r.GroupVersionKindFor(fresh)
		if err != nil {
			return fresh, err
		}
		fresh.GetObjectKind().SetGroupVersionKind(kind)
		return fresh, r.Patch(ctx, fresh, client.Apply, client.FieldOwner(fieldManager), client.ForceOwnership)
	case missing:
		return wanted, r.Create(ctx, wanted)
	default:
		return wanted, r.Update(ctx, wanted)
	}
}
