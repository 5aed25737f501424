package control

import (
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
	case pipeline.AgentHungUp, pipeline.HandedOver:
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
