package pipeline

import (
	"testing"

	"github.com/parley-voice/parley/media"
)

func TestEndedBy(t *testing.T) {
	for cause, want := range map[media.Cause]Reason{
		media.RemoteHangup: CallerHungUp, media.MediaTimeout: NoMedia, media.Expired: NoMedia,
		media.Transferred: HandedOver, media.Failure: AgentError, media.LocalHangup: Stopped, "": Stopped,
	} {
		if got := EndedBy(cause); got != want {
			t.Errorf("%q: %s, want %s", cause, got, want)
		}
	}
}
