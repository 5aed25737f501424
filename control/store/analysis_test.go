package store_test

import (
	"encoding/json"
	"testing"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/pipeline/tools"
)

// TestAgentVersionIsFixedByOrder checks that a call runs and is analyzed with the agent version that was published
// when the call was accepted, even if a newer version was published since.
func TestAgentVersionIsFixedByOrder(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	publish := func(prompt string, own ...agents.Tool) {
		t.Helper()
		a, err := agents.Find(t.Context(), b.db.Pool, b.org, "sales")
		if err != nil {
			t.Fatal(err)
		}
		a.Draft.Prompt, a.Draft.Variables, a.Draft.Tools = prompt, map[string]string{"what": "tea"}, own
		if _, err = agents.Save(t.Context(), b.db.Pool, b.org, "sales", a.Draft); err == nil {
			_, err = agents.Publish(t.Context(), b.db.Pool, b.org, "sales")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	publish("Sell {{what}}.", agents.Tool{Definition: tools.Definition{Type: tools.EndCall}})
	id := b.order("sales", 1)[0]
	publish("Sell coffee.")
	c := b.claim("n")
	if c == nil || c.Session.Prompt != "Sell tea." || len(c.Session.Tools) != 1 {
		t.Fatalf("claimed %+v", c)
	}
	d, err := b.store.AgentDefinition(t.Context(), id)
	if err != nil || d.Prompt != "Sell {{what}}." {
		t.Errorf("definition %q, %v", d.Prompt, err)
	}
	later := b.order("sales", 1)[0]
	if d, err = b.store.AgentDefinition(t.Context(), later); err != nil || d.Prompt != "Sell coffee." {
		t.Errorf("a later call has %q, %v", d.Prompt, err)
	}
}

// TestAnalysisIsStoredOnce checks that a second result does not replace the first.
func TestAnalysisIsStoredOnce(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	id := b.order("sales", 1)[0]
	for _, summary := range []string{"first", "second"} {
		if err := b.store.SetAnalysis(t.Context(), id, "complete", json.RawMessage(`{"summary":"`+summary+`"}`), ""); err != nil {
			t.Fatal(err)
		}
	}
	if c := b.call(id); c.AnalysisStatus != "complete" || string(c.Analysis) != `{"summary": "first"}` || c.AnalysisError != "" {
		t.Errorf("%s %s %q", c.AnalysisStatus, c.Analysis, c.AnalysisError)
	}
	other := b.order("sales", 1)[0]
	if err := b.store.SetAnalysis(t.Context(), other, "failed", nil, "model: 503"); err != nil {
		t.Fatal(err)
	}
	if c := b.call(other); c.AnalysisStatus != "failed" || c.Analysis != nil || c.AnalysisError != "model: 503" {
		t.Errorf("%s %s %q", c.AnalysisStatus, c.Analysis, c.AnalysisError)
	}
}
