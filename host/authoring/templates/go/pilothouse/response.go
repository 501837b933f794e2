package pilothouse

import (
	"encoding/json"
	"fmt"

	"{{group}}/{{name}}/pilothouse/contract"
)

// Response is the output of one reconcile, built step by step. The host takes children, status, conditions, events and measurements with
// every verdict. Without a call of Child or NoChildren the children stay as they are.
type Response struct {
	contract.Response
	// The first part that could not be written.
	err error
}

// Done says that the children of this response are what the object asks for.
func Done() *Response { return of(contract.Verdict{Outcome: contract.Done}) }

// Wait says that something outside is missing: the host asks again after so many seconds, or when a lookup changes.
func Wait(reason string, seconds uint32, message string, arguments ...any) *Response {
	text := fmt.Sprintf(message, arguments...)
	return of(contract.Verdict{Outcome: contract.Wait, Reason: reason, Message: text, Seconds: seconds})
}

// Retry tells of a passing fault: the host asks again with backoff.
func Retry(message string, arguments ...any) *Response {
	return of(contract.Verdict{Outcome: contract.Retry, Message: fmt.Sprintf(message, arguments...)})
}

// Invalid says that the object cannot be satisfied as it is.
func Invalid(message string, arguments ...any) *Response {
	return of(contract.Verdict{Outcome: contract.Invalid, Message: fmt.Sprintf(message, arguments...)})
}

func of(verdict contract.Verdict) *Response {
	return &Response{Response: contract.Response{Verdict: verdict}}
}

// Option changes how the host treats a child.
type Option func(*contract.Child)

// Handled says what the host does with the child. Default: contract.Apply.
func Handled(handling contract.Handling) Option {
	return func(child *contract.Child) { child.Handling = handling }
}

// After has the child wait for children that were returned before it, by their places from 0 on.
func After(places ...uint32) Option {
	return func(child *contract.Child) { child.After = places }
}

// RecreatedWhenImmutable has the host delete the child and create it anew where a field cannot change.
func RecreatedWhenImmutable() Option {
	return func(child *contract.Child) { child.OnImmutable = contract.Recreate }
}

// KeptOnRemoval has the child stay once it is no longer wanted.
func KeptOnRemoval() Option {
	return func(child *contract.Child) { child.OnRemoval = contract.KeepOrphaned }
}

// Unmanaged names fields that others set, as JSON pointers such as "/spec/replicas".
func Unmanaged(pointers ...string) Option {
	return func(child *contract.Child) { child.Unmanaged = pointers }
}

// Child adds a child that shall exist: what becomes a Kubernetes object as JSON.
func (r *Response) Child(object any, options ...Option) *Response {
	child := contract.Child{Object: r.text("a child", object)}
	for _, option := range options {
		option(&child)
	}
	r.Response.Children = append(r.Response.Children, child)
	return r
}

// NoChildren says that there shall be none.
func (r *Response) NoChildren() *Response {
	r.Response.Children = []contract.Child{}
	return r
}

// RemovesMany says that most of the object's children are removed on purpose.
func (r *Response) RemovesMany() *Response {
	r.Response.RemovesMany = true
	return r
}

// Status sets the status fields. Conditions and observedGeneration are the host's.
func (r *Response) Status(status any) *Response {
	text := r.text("the status", status)
	r.Response.Status = &text
	return r
}

// Condition adds a condition that is true or false.
func (r *Response) Condition(name string, holds bool, reason, message string, arguments ...any) *Response {
	condition := contract.Condition{Type: name, Status: contract.False, Reason: reason, Message: fmt.Sprintf(message, arguments...)}
	if holds {
		condition.Status = contract.True
	}
	r.Conditions = append(r.Conditions, condition)
	return r
}

// Event adds an Event on the object.
func (r *Response) Event(kind contract.EventType, reason, message string, arguments ...any) *Response {
	event := contract.Event{Type: kind, Reason: reason, Message: fmt.Sprintf(message, arguments...)}
	r.Events = append(r.Events, event)
	return r
}

// Measurement adds a sample of a metric that the manifest declares.
func (r *Response) Measurement(name string, value float64, labels ...contract.Label) *Response {
	r.Measurements = append(r.Measurements, contract.Measurement{Name: name, Value: value, Labels: labels})
	return r
}

// RequeueAfter has the host ask again after so many seconds, at the latest.
func (r *Response) RequeueAfter(seconds uint32) *Response {
	r.Response.RequeueAfter = &seconds
	return r
}

func (r *Response) text(what string, value any) string {
	text, err := json.Marshal(value)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("cannot write %s: %w", what, err)
	}
	return string(text)
}
