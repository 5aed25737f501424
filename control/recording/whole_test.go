package recording_test

import (
	"context"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media"
)

// An able leg has all optional interfaces.
type able struct{ leg }

func (able) Arrived() (time.Time, bool)             { return time.Unix(7, 0), true }
func (able) Quality() media.Quality                 { return media.Quality{Codec: "G722"} }
func (able) Ladder(context.Context) []media.Message { return []media.Message{{Line: "INVITE"}} }
func (able) Press(string) error                     { return nil }
func (able) Refer(context.Context, string) error    { return nil }
func (able) Hold(context.Context, bool) error       { return nil }
func (able) ReadFrame(f media.Frame) error          { clear(f); return nil }

// TestTapeKeepsTheLegsPowers: a recording has the optional interfaces of its leg, and no others.
func TestTapeKeepsTheLegsPowers(t *testing.T) {
	s, _ := newSpool(t, control.RecordingFinalizing)
	tape := func(id string, l media.Leg) media.Leg {
		t.Helper()
		taped, tape, err := s.Record(id, l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := tape.Close(); err != nil {
				t.Error(err)
			}
		})
		return taped
	}
	taped := tape("call_able", able{})
	if g, ok := taped.(media.QualityReporter); !ok || g.Quality().Codec != "G722" {
		t.Error("a tape hides the quality")
	}
	if l, ok := taped.(media.SignalingTracer); !ok || len(l.Ladder(t.Context())) != 1 {
		t.Error("a tape hides the ladder")
	}
	if a, ok := taped.(media.Arrival); !ok {
		t.Error("a tape hides arrivals")
	} else if at, ok := a.Arrived(); !ok || at.Unix() != 7 {
		t.Errorf("arrived %v, %v", at, ok)
	}
	for what, ok := range map[string]bool{"keypad": is[media.Keypad](taped), "transfer": is[media.Referrer](taped), "hold": is[media.Holder](taped)} {
		if !ok {
			t.Errorf("a tape hides the %s", what)
		}
	}
	if poor := tape("call_poor", leg{}); is[media.Keypad](poor) || is[media.QualityReporter](poor) || is[media.SignalingTracer](poor) {
		t.Error("a tape can do more than its leg")
	}
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}
