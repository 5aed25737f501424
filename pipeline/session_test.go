package pipeline

import (
	"testing"

	"github.com/parley-voice/parley/media"
)

func TestEndedBy(t *testing.T) {
	for cause, want := range map[media.Cause]Reason{
		media.RemoteHangup: CallerHungUp, media.MediaTimeout: NoMedia, media.Expired: NoMedia,
		media.Transferred: Transferred, media.Failure: AgentError, media.LocalHangup: Stopped, "": Stopped,
	} {
		if got := ReasonOf(cause); got != want {
			t.Errorf("%q: %s, want %s", cause, got, want)
		}
	}
}
