//go:build wasip1

package contract

import "syscall"

// Call answers a call of the host: the parameters are those of the exported function, the result is where the response is.
func Call(object, objectLength, children, childrenLength, refused, refusedLength, config, configLength uint32,
	answer func(*Request) *Response) uint32 {
	returned = nil
	request := &Request{
		Object:   text(object, objectLength),
		Children: lift(children, childrenLength, 28, liveChild),
		Refused:  lift(refused, refusedLength, 52, refusedChild),
		Config:   text(config, configLength),
	}
	// What is in use is in the request now.
	given = nil
	response := values{allocate(84)}
	returned = append(returned, response.at)
	setResponse(response, answer(request))
	// What was printed without the end of its line belongs to this call.
	_ = syscall.Fsync(1)
	return address(response.at)
}

func liveChild(v values) LiveChild {
	return LiveChild{v.text(0), Readiness{ReadinessStatus(*v.byte(8)), v.text(12), v.text(20)}}
}

func refusedChild(v values) RefusedChild {
	refused := RefusedChild{Kind: Kind{v.text(0), v.text(8)}, Name: v.text(28), Reason: v.text(36), Message: v.text(44)}
	if *v.byte(16) == 1 {
		refused.Namespace = v.text(20)
	}
	return refused
}

func setResponse(v values, response *Response) {
	setVerdict(v, response.Verdict)
	if response.Children != nil {
		v.setFlag(24, true)
		lower(v, 28, response.Children, 32, setChild)
	}
	v.setFlag(36, response.RemovesMany)
	if response.Status != nil {
		v.setFlag(40, true)
		v.setText(44, *response.Status)
	}
	lower(v, 52, response.Conditions, 28, setCondition)
	lower(v, 60, response.Events, 20, setEvent)
	lower(v, 68, response.Measurements, 24, setMeasurement)
	if response.RequeueAfter != nil {
		v.setFlag(76, true)
		*v.word(80) = *response.RequeueAfter
	}
}

func setVerdict(v values, verdict Verdict) {
	*v.byte(0) = uint8(verdict.Outcome)
	switch verdict.Outcome {
	case Wait:
		v.setText(4, verdict.Reason)
		v.setText(12, verdict.Message)
		*v.word(20) = verdict.Seconds
	case Retry, Invalid:
		v.setText(4, verdict.Message)
	}
}

func setChild(v values, child Child) {
	v.setText(0, child.Object)
	*v.byte(8) = uint8(child.Handling)
	lower(v, 12, child.After, 4, func(v values, place uint32) { *v.word(0) = place })
	*v.byte(20), *v.byte(21) = uint8(child.OnImmutable), uint8(child.OnRemoval)
	lower(v, 24, child.Unmanaged, 8, setString)
}

func setCondition(v values, condition Condition) {
	v.setText(0, condition.Type)
	*v.byte(8) = uint8(condition.Status)
	v.setText(12, condition.Reason)
	v.setText(20, condition.Message)
}

func setEvent(v values, event Event) {
	*v.byte(0) = uint8(event.Type)
	v.setText(4, event.Reason)
	v.setText(12, event.Message)
}

func setMeasurement(v values, measurement Measurement) {
	v.setText(0, measurement.Name)
	*v.float(8) = measurement.Value
	lower(v, 16, measurement.Labels, 16, func(v values, label Label) {
		v.setText(0, label.Key)
		v.setText(8, label.Value)
	})
}

func setString(v values, text string) { v.setText(0, text) }
