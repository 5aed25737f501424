package calls

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// deadlines records the deadline that a handler sets.
type deadlines struct {
	http.ResponseWriter

	set time.Time
}

// SetWriteDeadline implements the method that http.ResponseController looks for.
func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.set = at
	return nil
}

// TestExportDeadline checks that an export reads no calls in the last seconds of its limit, and writes nothing after it.
func TestExportDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, w := time.Now(), &deadlines{ResponseWriter: httptest.NewRecorder()}
		request, cancel := context.WithTimeout(t.Context(), exportTimeout)
		defer cancel()
		ctx, stop := boundExport(request, w)
		defer stop()
		<-ctx.Done()
		if read := time.Since(began); read != exportTimeout-lastLineTime || request.Err() != nil {
			t.Errorf("calls are read for %v, and the request is over: %v", read, request.Err())
		}
		if written := w.set.Sub(began); written != exportTimeout {
			t.Errorf("lines are written for %v", written)
		}
	})
}

// TestExporters gives each operator one export at a time, and the server maxExports.
func TestExporters(t *testing.T) {
	e := exporters{all: map[string]bool{}}
	for i, step := range []struct {
		email string
		may   bool
	}{{"ada", true}, {"ada", false}, {"bo", true}, {"cy", false}} {
		if got := e.begin(step.email); got != step.may {
			t.Errorf("%d: %s: %t", i, step.email, got)
		}
	}
	e.end("ada")
	if !e.begin("cy") || e.begin("ada") {
		t.Error("a place is lost or given twice")
	}
}
