package control

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// halted is the end of a call that was stopped before it was dialled.
func halted(why Reason) Final {
	by := SideSystem
	if why == ReasonCancelled {
		by = SideAPI
	}
	return Final{Status: Failed, Reason: why, HangupBy: by, EndedAt: time.Now(), Recording: RecordingNone}
}

// unanswered fills in why a call failed. cause is why its context ended.
func unanswered(err, cause error, f *Final) {
	f.Status, f.Reason, f.HangupBy = Failed, ReasonInternalError, SideSystem
	var d *media.DialError
	if !errors.As(err, &d) {
		if cause != nil {
			f.Reason, f.HangupBy = ReasonCancelled, asker(cause)
		}
		return
	}
	f.SIPStatus, f.SIPReason = d.Status, d.Reason
	switch d.Cause {
	case media.Cancelled:
		f.Reason, f.HangupBy = ReasonCancelled, asker(cause)
	case media.Busy, media.Declined:
		f.Reason, f.HangupBy = Reason(d.Cause), SideCallee
	case media.InvalidNumber, media.Blocked, media.RouteError, media.AuthFailed, media.Congestion, media.Redirected:
		f.Reason, f.HangupBy = Reason(d.Cause), SideCarrier
	case media.NoAnswer:
		f.Reason = Reason(d.Cause)
	default: // the causes of legs that had begun are none here
	}
}

// conversed says why a conversation ended, and by whom.
func conversed(why pipeline.Reason, cause error) (Reason, Side) {
	switch why {
	case pipeline.CallerHungUp:
		return Reason(why), SideCallee
	case pipeline.AgentHungUp, pipeline.HandedOver, pipeline.VoicemailLeft, pipeline.VoicemailReached, pipeline.IVRReached:
		return Reason(why), SideAgent
	case pipeline.Stopped:
		if errors.Is(cause, errAsked) {
			return Reason(why), SideAPI
		}
		return ReasonShutdown, SideSystem
	case pipeline.TooLong, pipeline.Inactive, pipeline.NoMedia, pipeline.AgentError:
		return Reason(why), SideSystem
	default:
		return Reason(pipeline.AgentError), SideSystem
	}
}

func asker(cause error) Side {
	if errors.Is(cause, errAsked) {
		return SideAPI
	}
	return SideSystem
}

// handedOver is the handing over of a party, as stored and shown.
func handedOver(h *pipeline.Handover) json.RawMessage {
	if h == nil {
		return nil
	}
	status := "failed"
	if h.Answered {
		status = "answered"
	}
	transfer, err := json.Marshal(struct {
		Type    string  `json:"type"` // "cold": nobody is told beforehand who comes
		To      string  `json:"to"`
		Status  string  `json:"status"`
		Bridged bool    `json:"bridged"` // by a second leg of ours, rather than by the party's side
		At      float64 `json:"at"`      // seconds since 1970
	}{"cold", h.To, status, h.Bridged, float64(h.At.UnixMilli()) / 1000})
	if err != nil {
		return nil // strings and numbers always can be written
	}
	return transfer
}

// answeredBy is who answered, and how that is known, as stored and shown.
func answeredBy(by *pipeline.AnsweredBy) (party string, amd json.RawMessage) {
	if by == nil {
		return "", nil
	}
	amd, err := json.Marshal(map[string]any{"confidence": by.Confidence, "evidence": by.Evidence, "amd_ms": pipeline.Millis(by.After)})
	if err != nil {
		return by.Party, nil // a number that is none: what it was known by is lost
	}
	return by.Party, amd
}
