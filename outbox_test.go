package main

import (
	"testing"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/metrics"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/pipeline/conversation"
)

// TestContactOutcomePrecedesFiles checks that contacts get their outcomes before files are stored, because storing may
// take long.
func TestContactOutcomePrecedesFiles(t *testing.T) {
	srv := &server{db: &db.DB{}, store: &store.Store{}, telemetry: telemetry{metrics: &metrics.Metrics{}}, agent: &conversation.Agent{}}
	told, files := -1, -1
	for i, s := range srv.endSteps(callview.View{}) {
		switch {
		case s.Name == "contact":
			told = i
		case s.Lane == control.FastLane && !s.AnyNode && files < 0:
			files = i
		}
	}
	if told < 0 || files < 0 || told > files {
		t.Errorf("the outcome of the contact is step %d, and the first step that needs files is step %d", told, files)
	}
}
