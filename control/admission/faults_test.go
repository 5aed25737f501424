package admission_test

import (
	"context"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
)

// panickingScreener is a Screener that panics.
type panickingScreener struct{}

func (panickingScreener) Screen(context.Context, control.Number, control.Purpose) (control.ScreenResult, error) {
	panic("canary") //nolint:forbidigo // under test
}

// TestPanicFreesLimiter checks that an order that panics leaves the limiter. Otherwise a few hundred such orders would
// block the limiter forever.
func TestPanicFreesLimiter(t *testing.T) {
	w := newFixture(t)
	w.controller.Screener = panickingScreener{}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range 200 {
		func() {
			defer func() { _ = recover() }()
			_, err := w.controller.Place(ctx, w.org["acme"], admission.Order{Agent: "sales", To: "+12025550123"}, nil)
			t.Errorf("no panic, but %v", err)
		}()
	}
	w.controller.Screener = nil
	if _, err := w.controller.Place(ctx, w.org["acme"], admission.Order{Agent: "sales", To: "+12025550123"}, nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// subgroupDeleter is a Screener that deletes a subgroup while it screens a number.
type subgroupDeleter struct{ w *fixture }

func (x subgroupDeleter) Screen(context.Context, control.Number, control.Purpose) (control.ScreenResult, error) {
	x.w.exec("DELETE FROM subgroups")
	return control.ScreenResult{}, nil
}

// TestSubgroupDeletedDuringCheck checks that an order is refused with "subgroup not found" if its subgroup is deleted
// during the check.
func TestSubgroupDeletedDuringCheck(t *testing.T) {
	w := newFixture(t)
	w.controller.Screener = subgroupDeleter{w}
	if _, code := w.order("acme", admission.Order{Agent: "sales"}); code != control.CodeSubgroupNotFound {
		t.Errorf("%q", code)
	}
}
