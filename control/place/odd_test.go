package place_test

import (
	"context"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/place"
)

// A broken screen panics.
type broken struct{}

func (broken) Allowed(context.Context, control.Number, control.Purpose) (control.Verdict, error) {
	panic("canary") //nolint:forbidigo // what is tested
}

// TestAPanicKeepsNoPlace: whose order panics leaves the gate like anybody; else some
// hundreds of them would shut it for good.
func TestAPanicKeepsNoPlace(t *testing.T) {
	w := newTown(t)
	w.desk.Screen = broken{}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range 200 {
		func() {
			defer func() { _ = recover() }()
			_, err := w.desk.Place(ctx, w.org["acme"], place.Order{Agent: "sales", To: "+12025550123"}, nil)
			t.Errorf("no panic, but %v", err)
		}()
	}
	w.desk.Screen = nil
	if _, err := w.desk.Place(ctx, w.org["acme"], place.Order{Agent: "sales", To: "+12025550123"}, nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A taker takes a subgroup away while its order is looked at.
type taker struct{ w *town }

func (x taker) Allowed(context.Context, control.Number, control.Purpose) (control.Verdict, error) {
	x.w.exec("DELETE FROM subgroups")
	return control.Verdict{}, nil
}

// TestASubgroupThatGoesMeanwhile is not found, like one that was never there.
func TestASubgroupThatGoesMeanwhile(t *testing.T) {
	w := newTown(t)
	w.desk.Screen = taker{w}
	if _, code := w.order("acme", place.Order{Agent: "sales"}); code != control.CodeSubgroupNotFound {
		t.Errorf("%q", code)
	}
}
