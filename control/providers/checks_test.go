package providers

import (
	"reflect"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/provider"
)

// TestChecks checks that a stored report is read only for the same organization and engines, and only for an hour.
func TestChecks(t *testing.T) {
	pool, ctx := dbtest.New(t).Pool, t.Context()
	e := pipeline.Engines{LLM: pipeline.Engine{Provider: "groq", Model: "m"}}
	report := []provider.EngineCheck{{Serves: "llm", Provider: "groq", Model: "m", At: time.Now().UTC().Round(time.Millisecond), Error: "401", Misconfigured: true}}
	other := e
	other.LLM.Model = "n"
	for range 2 { // the second report replaces the first
		if err := SaveChecks(ctx, pool, "org_1", e, report); err != nil {
			t.Fatal(err)
		}
	}
	read := func(org string, e pipeline.Engines, want []provider.EngineCheck) {
		t.Helper()
		if got, err := ReadChecks(ctx, pool, org, e); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", org, got, err)
		}
	}
	read("org_1", e, report)
	read("org_2", e, nil)
	read("org_1", other, nil)
	if _, err := pool.Exec(ctx, "UPDATE provider_checks SET at = at - interval '61 minutes'"); err != nil {
		t.Fatal(err)
	}
	read("org_1", e, nil)
}
