// Reads manifests (YAML) from standard input as an API server does: strictly, fills in the defaults, validates, and asks
// Pod Security's `restricted` about each pod. Prints what is refused, and a count; exit code 1 when something is.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serial "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsrules "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	scalingrules "k8s.io/kubernetes/pkg/apis/autoscaling/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchrules "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corerules "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkrules "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyrules "k8s.io/kubernetes/pkg/apis/policy/validation"
	security "k8s.io/pod-security-admission/api"
	securityrules "k8s.io/pod-security-admission/policy"
)

// Groups whose definitions others bring: nothing here knows them.
var foreign = map[string]bool{"kafka.strimzi.io": true, "keda.sh": true}

func options(template *core.PodTemplateSpec) corerules.PodValidationOptions {
	return pod.GetValidationOptionsFromPodTemplate(template, nil)
}

// What the API server's strategy of the kind calls when one is created.
func validate(object runtime.Object) (field.ErrorList, error) {
	switch one := object.(type) {
	case *apps.Deployment:
		return appsrules.ValidateDeployment(one, options(&one.Spec.Template)), nil
	case *apps.StatefulSet:
		return appsrules.ValidateStatefulSet(one, options(&one.Spec.Template)), nil
	case *batch.Job: // its selector is the server's to make; the rest is that of a CronJob's
		template := batch.JobTemplateSpec{ObjectMeta: one.ObjectMeta, Spec: one.Spec}
		return batchrules.ValidateJobTemplateSpec(&template, nil, options(&one.Spec.Template)), nil
	case *batch.CronJob:
		return batchrules.ValidateCronJobCreate(one, options(&one.Spec.JobTemplate.Spec.Template)), nil
	case *core.ConfigMap:
		return corerules.ValidateConfigMap(one), nil
	case *core.Namespace:
		return corerules.ValidateNamespace(one), nil
	case *core.PersistentVolumeClaim:
		return corerules.ValidatePersistentVolumeClaim(one, corerules.ValidationOptionsForPersistentVolumeClaim(one, nil)), nil
	case *core.Service:
		return corerules.ValidateServiceCreate(one), nil
	case *networking.Ingress:
		return networkrules.ValidateIngressCreate(one), nil
	case *networking.NetworkPolicy:
		return networkrules.ValidateNetworkPolicy(one, networkrules.NetworkPolicyValidationOptions{}), nil
	case *policy.PodDisruptionBudget:
		return policyrules.ValidatePodDisruptionBudget(one, policyrules.PodDisruptionBudgetValidationOptions{}), nil
	case *autoscaling.HorizontalPodAutoscaler:
		return scalingrules.ValidateHorizontalPodAutoscaler(one,
			scalingrules.HorizontalPodAutoscalerSpecValidationOptions{MinReplicasLowerBound: 1}), nil
	}
	return nil, fmt.Errorf("no rules for %T: add them to KubernetesTakes.go", object)
}

// The pods that it makes, if it makes any.
func template(object runtime.Object) *corev1.PodTemplateSpec {
	switch one := object.(type) {
	case *appsv1.Deployment:
		return &one.Spec.Template
	case *appsv1.StatefulSet:
		return &one.Spec.Template
	case *batchv1.Job:
		return &one.Spec.Template
	case *batchv1.CronJob:
		return &one.Spec.JobTemplate.Spec.Template
	}
	return nil
}

func restricted(evaluator securityrules.Evaluator, object runtime.Object) []error {
	pods := template(object)
	if pods == nil {
		return nil
	}
	var faults []error
	level := security.LevelVersion{Level: security.LevelRestricted, Version: security.LatestVersion()}
	for _, result := range evaluator.EvaluatePod(level, &pods.ObjectMeta, &pods.Spec) {
		if !result.Allowed {
			faults = append(faults, fmt.Errorf("%s: %s", result.ForbiddenReason, result.ForbiddenDetail))
		}
	}
	return faults
}

func take(evaluator securityrules.Evaluator, object runtime.Object) error {
	legacyscheme.Scheme.Default(object)
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, runtime.InternalGroupVersioner)
	if err != nil {
		return err
	}
	faults, err := validate(internal)
	if err != nil {
		return err
	}
	all := restricted(evaluator, object)
	for _, fault := range faults {
		all = append(all, fault)
	}
	return errors.Join(all...)
}

// Which it is, for people.
func label(kind *schema.GroupVersionKind, object runtime.Object) string {
	if accessor, err := meta.Accessor(object); err == nil && kind != nil {
		return kind.Kind + " " + accessor.GetName()
	}
	return fmt.Sprint(kind)
}

func run(in io.Reader) (taken, refused, leftOut int, err error) {
	decoder := serial.NewSerializerWithOptions(serial.DefaultMetaFactory, legacyscheme.Scheme, legacyscheme.Scheme,
		serial.SerializerOptions{Yaml: true, Strict: true})
	evaluator, err := securityrules.NewEvaluator(securityrules.DefaultChecks())
	if err != nil {
		return 0, 0, 0, err
	}
	for documents := yaml.NewYAMLReader(bufio.NewReader(in)); ; {
		text, err := documents.Read()
		if err == io.EOF {
			return taken, refused, leftOut, nil
		}
		if err != nil {
			return taken, refused, leftOut, err
		}
		object, kind, fault := decoder.Decode(text, nil, nil)
		if fault != nil && kind != nil && foreign[kind.Group] {
			leftOut++
			continue
		}
		if fault == nil {
			fault = take(evaluator, object)
		}
		if fault == nil {
			taken++
			continue
		}
		refused++
		fmt.Printf("refused: %s: %s\n", label(kind, object), fault)
	}
}

func main() {
	taken, refused, leftOut, err := run(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Printf("%d taken, %d refused, %d left out: of groups that Kubernetes does not have itself\n", taken, refused, leftOut)
	if refused > 0 || taken == 0 {
		os.Exit(1)
	}
}
