// Package contract has what crosses between the host and a plugin, as the contract of Pilothouse (wit/0.2/plugin.wit) says it. Objects
// are JSON texts. Plugins use the package pilothouse, which has types over it.
package contract

// Version of the contract that this package speaks.
const Version = "{{contract}}"

// Kind of objects, as in a manifest file of Kubernetes: "apps/v1" and "Deployment".
type Kind struct {
	APIVersion, Name string
}

// ReadinessStatus says how far a child is, by the rules of kstatus.
type ReadinessStatus uint8

// In the order of the contract.
const (
	Current ReadinessStatus = iota
	InProgress
	Failed
	Terminating
)

// Readiness says how far a child is, and why. Reason and Message are empty where it is Current.
type Readiness struct {
	Status          ReadinessStatus
	Reason, Message string
}

// LiveChild is a child that exists.
type LiveChild struct {
	Object    string
	Readiness Readiness
}

// RefusedChild is a child of an earlier answer that could not be written. Namespace is empty for a cluster-scoped kind.
type RefusedChild struct {
	Kind                             Kind
	Namespace, Name, Reason, Message string
}

// Request is the input of one reconcile.
type Request struct {
	Object   string
	Children []LiveChild
	Refused  []RefusedChild
	Config   string
}

// ImmutablePolicy says what to do when a change of a child is refused because a field cannot change.
type ImmutablePolicy uint8

// In the order of the contract.
const (
	Fail ImmutablePolicy = iota
	Recreate
)

// RemovalPolicy says what becomes of a child that is no longer returned.
type RemovalPolicy uint8

// In the order of the contract.
const (
	Delete RemovalPolicy = iota
	KeepOrphaned
)

// Handling says what the host does with a child.
type Handling uint8

// In the order of the contract.
const (
	// Apply creates it, and repairs what others change.
	Apply Handling = iota
	// Create creates it where it does not exist, and never changes it.
	Create
	// Keep leaves it as it is, and does not create it.
	Keep
)

// Child shall exist.
type Child struct {
	Object      string
	Handling    Handling
	After       []uint32
	OnImmutable ImmutablePolicy
	OnRemoval   RemovalPolicy
	Unmanaged   []string
}

// ConditionStatus is that of a Kubernetes condition.
type ConditionStatus uint8

// In the order of the contract.
const (
	True ConditionStatus = iota
	False
	Unknown
)

// Condition of the object's status. Reason is one CamelCase word, and never empty.
type Condition struct {
	Type            string
	Status          ConditionStatus
	Reason, Message string
}

// EventType is that of a Kubernetes Event.
type EventType uint8

// In the order of the contract.
const (
	Normal EventType = iota
	Warning
)

// Event on the object. Reason is one CamelCase word.
type Event struct {
	Type            EventType
	Reason, Message string
}

// Label of a measurement.
type Label struct {
	Key, Value string
}

// Measurement is one sample of a metric that the manifest declares.
type Measurement struct {
	Name   string
	Value  float64
	Labels []Label
}

// Outcome is the case of a verdict.
type Outcome uint8

// In the order of the contract.
const (
	Done Outcome = iota
	Wait
	Retry
	Invalid
)

// Verdict says how it went. Reason and Seconds count for Wait only, Message for all but Done.
type Verdict struct {
	Outcome         Outcome
	Reason, Message string
	Seconds         uint32
}

// Response is the output of one reconcile.
type Response struct {
	Verdict Verdict
	// nil leaves them as they are; an empty list removes them.
	Children    []Child
	RemovesMany bool
	// nil leaves the status fields as they are.
	Status       *string
	Conditions   []Condition
	Events       []Event
	Measurements []Measurement
	RequeueAfter *uint32
}

// Refusal is the case of an error of a lookup.
type Refusal uint8

// In the order of the contract.
const (
	Denied Refusal = iota
	NotInstalled
	TooLarge
)

// LookupError says why there is no answer.
type LookupError struct {
	Refusal Refusal
	Message string
}

func (e *LookupError) Error() string { return e.Message }

// Where a lookup looks.
type Where uint8

// In the order of the contract.
const (
	OwnNamespace Where = iota
	InNamespace
	AllNamespaces
)

// Scope of a lookup. Namespace counts for InNamespace only.
type Scope struct {
	Where     Where
	Namespace string
}

// Level of a line of the log.
type Level uint32

// In the order of the contract.
const (
	LevelError Level = iota
	LevelWarn
	LevelInfo
	LevelDebug
)
