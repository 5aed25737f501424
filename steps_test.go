package main

import (
	"testing"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/metrics"
	"github.com/parley-voice/parley/control/view"
	"github.com/parley-voice/parley/pipeline/converse"
)

// TestContactsWaitForNoFile: contacts are told what came of their calls before anything
// is done with files, which may be away for long.
func TestContactsWaitForNoFile(t *testing.T) {
	h := &house{db: &db.DB{}, metrics: &metrics.Metrics{}, agent: &converse.Agent{}}
	told, files := -1, -1
	for i, s := range h.steps(view.View{}) {
		switch {
		case s.Name == "contact":
			told = i
		case s.Line == control.Quick && !s.Anywhere && files < 0:
			files = i
		}
	}
	if told < 0 || files < 0 || told > files {
		t.Errorf("contacts are told as step %d, the first that needs files is step %d", told, files)
	}
}
