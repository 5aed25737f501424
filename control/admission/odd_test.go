package admission_test

import (
	"context"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
)

// broken is a Screener that panics.
type broken struct{}

func (broken) Screen(context.Context, control.Number, control.Purpose) (control.Verdict, error) {
	panic("canary") //nolint:forbidigo // under test
}

// TestAPanicKeepsNoPlace: an order that panics frees its place; otherwise some hundreds of them would block the
// limiter for good.
func TestAPanicKeepsNoPlace(t *testing.T) {
	w := newTown(t)
	w.desk.Screener = broken{}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range 200 {
		func() {
			defer func() { _ = recover() }()
			_, err := w.desk.Place(ctx, w.org["acme"], admission.Order{Agent: "sales", To: "+12025550123"}, nil)
			t.Errorf("no panic, but %v", err)
		}()
	}
	w.desk.Screener = nil
	if _, err := w.desk.Place(ctx, w.org["acme"], admission.Order{Agent: "sales", To: "+12025550123"}, nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// taker is a Screener that deletes a subgroup during the check.
type taker struct{ w *town }

func (x taker) Screen(context.Context, control.Number, control.Purpose) (control.Verdict, error) {
	x.w.exec("DELETE FROM subgroups")
	return control.Verdict{}, nil
}

// TestASubgroupThatGoesMeanwhile: a subgroup deleted during the check is not found.
func TestASubgroupThatGoesMeanwhile(t *testing.T) {
	w := newTown(t)
	w.desk.Screener = taker{w}
	if _, code := w.order("acme", admission.Order{Agent: "sales"}); code != control.CodeSubgroupNotFound {
		t.Errorf("%q", code)
	}
}
