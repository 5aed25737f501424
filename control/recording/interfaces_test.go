package recording_test

import (
	"context"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media"
)

// fullLeg is a leg that implements all optional interfaces.
type fullLeg struct{ plainLeg }

func (fullLeg) Arrived() (time.Time, bool)             { return time.Unix(7, 0), true }
func (fullLeg) Quality() media.Quality                 { return media.Quality{Codec: "G722"} }
func (fullLeg) Ladder(context.Context) []media.Message { return []media.Message{{Line: "INVITE"}} }
func (fullLeg) Press(string) error                     { return nil }
func (fullLeg) Refer(context.Context, string) error    { return nil }
func (fullLeg) Hold(context.Context, bool) error       { return nil }
func (fullLeg) ReadFrame(f media.Frame) error          { clear(f); return nil }

// TestRecordingKeepsOptionalInterfaces checks that a recorded leg implements the same optional interfaces as the
// original leg.
func TestRecordingKeepsOptionalInterfaces(t *testing.T) {
	s, _ := newSpool(t, control.RecordingFinalizing)
	record := func(id string, l media.Leg) media.Leg {
		t.Helper()
		recorded, rec, err := s.Record(id, l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := rec.Close(); err != nil {
				t.Error(err)
			}
		})
		return recorded
	}
	recorded := record("call_full", fullLeg{})
	if g, ok := recorded.(media.QualityReporter); !ok || g.Quality().Codec != "G722" {
		t.Error("the recorded leg lacks the quality")
	}
	if l, ok := recorded.(media.SignalingTracer); !ok || len(l.Ladder(t.Context())) != 1 {
		t.Error("the recorded leg lacks the ladder")
	}
	if a, ok := recorded.(media.Arrival); !ok {
		t.Error("the recorded leg lacks arrivals")
	} else if at, ok := a.Arrived(); !ok || at.Unix() != 7 {
		t.Errorf("arrived %v, %v", at, ok)
	}
	for what, ok := range map[string]bool{"keypad": is[media.Keypad](recorded), "transfer": is[media.Referrer](recorded), "hold": is[media.Holder](recorded)} {
		if !ok {
			t.Errorf("the recorded leg lacks the %s", what)
		}
	}
	if plain := record("call_plain", plainLeg{}); is[media.Keypad](plain) || is[media.QualityReporter](plain) || is[media.SignalingTracer](plain) {
		t.Error("a recorded leg has more interfaces than its leg")
	}
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}
