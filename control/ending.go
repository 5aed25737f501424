package control

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// stoppedResult returns the result of a call that was stopped before it was dialed.
func stoppedResult(why Reason) CallResult {
	by := SideSystem
	if why == ReasonCanceled {
		by = SideAPI
	}
	return CallResult{Status: Failed, Reason: why, HangupBy: by, EndedAt: time.Now(), Recording: RecordingNone}
}

// setFailure sets in f why dialing failed. cause is the cancellation cause of the dialing context.
func setFailure(err, cause error, f *CallResult) {
	f.Status, f.Reason, f.HangupBy = Failed, ReasonInternalError, SideSystem
	var d *media.DialError
	if !errors.As(err, &d) {
		if cause != nil {
			f.Reason, f.HangupBy = ReasonCanceled, endedBy(cause)
		}
		return
	}
	f.SIPStatus, f.SIPReason = d.Status, d.Reason
	switch d.Cause {
	case media.Canceled:
		f.Reason, f.HangupBy = ReasonCanceled, endedBy(cause)
	case media.Busy, media.Declined:
		f.Reason, f.HangupBy = Reason(d.Cause), SideCallee
	case media.InvalidNumber, media.Blocked, media.RouteError, media.AuthFailed, media.Congestion, media.Redirected:
		f.Reason, f.HangupBy = Reason(d.Cause), SideCarrier
	case media.NoAnswer:
		f.Reason = Reason(d.Cause)
	default: // other causes occur only on established legs
	}
}

// endReason converts the end of a conversation to a reason and the side that ended the call.
func endReason(why pipeline.Reason, cause error) (Reason, Side) {
	switch why {
	case pipeline.CallerHungUp:
		return Reason(why), SideCallee
	case pipeline.AgentHungUp, pipeline.Transferred, pipeline.VoicemailLeft, pipeline.VoicemailReached, pipeline.IVRReached:
		return Reason(why), SideAgent
	case pipeline.Stopped:
		if errors.Is(cause, errEndRequested) {
			return Reason(why), SideAPI
		}
		return ReasonShutdown, SideSystem
	case pipeline.MaxDurationReached, pipeline.Inactive, pipeline.NoMedia, pipeline.AgentError:
		return Reason(why), SideSystem
	default:
		return Reason(pipeline.AgentError), SideSystem
	}
}

func endedBy(cause error) Side {
	if errors.Is(cause, errEndRequested) {
		return SideAPI
	}
	return SideSystem
}

// Transfer is the transfer of a call, in the form that the database and the API use.
type Transfer struct {
	Type    string  `json:"type"` // "cold": nobody tells the target about the call
	To      string  `json:"to"`
	Status  string  `json:"status"`  // "answered" or "failed"
	Bridged bool    `json:"bridged"` // true: by a second leg; false: by SIP REFER
	At      float64 `json:"at"`      // seconds since 1970
}

// AMD is how it was determined who answered a call, in the form that the database and the API use.
type AMD struct {
	Confidence float64 `json:"confidence"`
	Evidence   string  `json:"evidence"`
	AMDMS      float64 `json:"amd_ms"`
}

// transferJSON returns a transfer as JSON for the database and the API, or nil if there was none.
func transferJSON(h *pipeline.TransferResult) json.RawMessage {
	if h == nil {
		return nil
	}
	status := "failed"
	if h.Answered {
		status = "answered"
	}
	transfer, err := json.Marshal(Transfer{"cold", h.To, status, h.Bridged, float64(h.At.UnixMilli()) / 1000})
	if err != nil {
		return nil // cannot happen: strings and numbers can always be marshaled
	}
	return transfer
}

// amdJSON returns who answered the call, and the JSON of how that was determined.
func amdJSON(by *pipeline.AnsweredBy) (party string, amd json.RawMessage) {
	if by == nil {
		return "", nil
	}
	amd, err := json.Marshal(AMD{by.Confidence, by.Evidence, pipeline.Millis(by.After)})
	if err != nil {
		return by.Party, nil // the details cannot be encoded (NaN), so they are dropped
	}
	return by.Party, amd
}
