package analysis_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/analysis"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/outbox"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/webhook"
	"github.com/parley-voice/parley/pipeline"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// flakyModel fails for the first few requests and then answers.
type flakyModel struct {
	fails, asked int
	how          error
}

func (f *flakyModel) Reply(context.Context, pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	f.asked++
	return func(yield func(pipeline.Delta, error) bool) {
		if f.asked <= f.fails {
			yield(pipeline.Delta{}, f.how)
			return
		}
		yield(pipeline.Delta{Calls: []pipeline.ToolCall{{
			Name: "report_call", Arguments: json.RawMessage(`{"summary":"x","success":true,"sentiment":null,"in_voicemail":false,"opt_out":false}`),
		}}}, nil)
	}
}

// TestRetriesAcrossRestarts runs each try in another process. It checks that the webhook is sent once, after the
// analysis is final, and never for a call that failed.
func TestRetriesAcrossRestarts(t *testing.T) {
	for name, tt := range map[string]struct {
		status        control.Status
		fails         int
		how           error
		asked         int
		want          string
		deliveries    int
		firstDelivery int // number of the run after which the webhook was sent
	}{
		"at once":        {control.Ended, 0, nil, 1, analysis.Complete, 1, 1},
		"the third time": {control.Ended, 2, errors.New("reset"), 3, analysis.Complete, 1, 3},
		"never":          {control.Ended, 9, pipeline.ErrUnusable, 3, analysis.Failed, 1, 3},
		"an outage":      {control.Ended, 9, errors.New("reset"), 5, analysis.None, 0, 9},
		"failed call":    {control.Failed, 0, nil, 0, analysis.None, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := dbtest.New(t)
			org, err := apikeys.EnsureOrganization(t.Context(), d.Pool, "acme")
			if err != nil {
				t.Fatal(err)
			}
			def := agents.Default()
			fake := pipeline.Engine{Provider: "fake"}
			def.Speech = pipeline.Engines{ASR: fake, LLM: fake, TTS: fake}
			agent, err := agents.Save(t.Context(), d.Pool, org, "a", def)
			if err == nil {
				_, err = agents.Publish(t.Context(), d.Pool, org, "a")
			}
			if err != nil {
				t.Fatal(err)
			}
			dbtest.Exec(t, d, `INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number,
				trunk_id, route_id, ring_seconds, created_at) VALUES ('c', $1, 'phone', $2, $3, 'a', 1, '1', '1', '1', 't', 'r', 45, now())`, org, tt.status, agent)
			dbtest.Exec(t, d, `INSERT INTO call_lines (call_id, n, item) VALUES ('c', 0, '{"role":"caller","text":"hello"}')`)
			dbtest.Exec(t, d, "INSERT INTO events (call_id, org_id, kind, home) VALUES ('c', $1, $2, '')", org, control.CallEnded)
			dbtest.Exec(t, d, `INSERT INTO webhook_endpoints (id, org_id, url, secret, events) VALUES ('e', $1, 'https://example.com', 's', '{call_analyzed}')`, org)
			m := &flakyModel{fails: tt.fails, how: tt.how}
			for run := 1; run <= 5; run++ {
				s := &store.Store{Pool: d.Pool}
				dbtest.Exec(t, d, "UPDATE events SET next_at = now() - interval '1 s', lease_until = NULL")
				_, err = (&outbox.Dispatcher{Outbox: &store.EventStore{Pool: d.Pool}, Steps: []control.Step{
					{Name: "analysis", Handler: &analysis.Analyst{Calls: s, Model: func(pipeline.Engine, *pipeline.UsageMeter) (pipeline.Model, error) { return m, nil }}},
					{Name: "analyzed", Handler: &webhook.Notifier{Type: webhook.CallAnalyzed, Pool: d.Pool, Calls: s}},
				}}).One(t.Context(), control.FastLane)
				if again := run < tt.firstDelivery; again != (err != nil) {
					t.Errorf("run %d: %v", run, err)
				}
				n := dbtest.Value[int](t, d, "SELECT count(*) FROM webhook_deliveries WHERE type = 'call_analyzed'")
				if want := tt.deliveries; run < tt.firstDelivery && n != 0 || run >= tt.firstDelivery && n != want {
					t.Errorf("after run %d: %d deliveries", run, n)
				}
			}
			c, err := (&store.Store{Pool: d.Pool}).Call(t.Context(), org, "c")
			if err != nil || c.AnalysisStatus != tt.want || m.asked != tt.asked || (c.AnalysisError != "") != (tt.want == analysis.Failed) {
				t.Errorf("%s %q, asked %d times, %v", c.AnalysisStatus, c.AnalysisError, m.asked, err)
			}
		})
	}
}
