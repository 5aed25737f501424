package calls

import "testing"

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
