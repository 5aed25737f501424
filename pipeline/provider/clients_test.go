package provider

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-voice/parley/pipeline"
)

// TestOrganizations checks that only the agents of an organization use its own endpoint, in place of the operator's
// endpoint with the same name. The endpoint has its own limit, breaker, test results and usage.
func TestOrganizations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		operators, own := modelStub{}, endsWith{errors.New("down")}
		c := &Clients{Models: map[string]pipeline.Model{"m": operators}, Organizations: map[string]*Clients{
			"org": {Models: map[string]pipeline.Model{"m": own, "extra": own}},
		}}
		g := &Guards{Limits: map[string]int{"m": 3, "org/m": 1}}
		checker := &Checker{Guards: g, Clients: c}
		engine := func(orgID, name string) pipeline.Engine { return pipeline.Engine{OrgID: orgID, Provider: name} }
		ask := func(e pipeline.Engine) (err error) {
			for _, fault := range g.Model(c, e, nil).Reply(t.Context(), pipeline.Prompt{}) {
				err = fault
			}
			return err
		}
		for range maxFailures {
			if ask(engine("org", "m")) == nil {
				t.Fatal("the own endpoint is not used")
			}
		}
		if err := ask(engine("org", "m")); !errors.Is(err, ErrOpen) || strings.Contains(err.Error(), "org/") {
			t.Errorf("own: %v", err)
		}
		for _, orgID := range []string{"", "other"} {
			if err := ask(engine(orgID, "m")); err != nil {
				t.Errorf("%q: %v", orgID, err)
			}
		}
		all := g.Statuses()
		if len(all) != 2 || all[0].Name != "m" || all[0].Limit != 3 || all[0].Open || all[1].Name != "m" || all[1].OrgID != "org" || all[1].Limit != 1 || !all[1].Open {
			t.Errorf("%+v", all)
		}
		for _, tt := range []struct{ orgID, name, want string }{
			{"org", "extra", ""},
			{"org", "m", ""},
			{"other", "extra", "accepted: m"},
			{"other", "org/m", "accepted: m"},
			{"", "org/m", "accepted: m"},
			{"org", "none", "accepted: extra, m"},
		} {
			err := c.CheckModel(engine(tt.orgID, tt.name))
			if (err == nil) != (tt.want == "") || err != nil && !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("%+v: %v", tt, err)
			}
		}

		engines := pipeline.Engines{LLM: engine("org", "m")}
		if err := checker.Usable(engines); !errors.Is(err, ErrOpen) {
			t.Errorf("usable: %v", err)
		}
		c.Organizations["org"].Models["m"] = operators // somebody has corrected the settings
		g.Reset([]string{"org/m"})
		g.SetLimits(map[string]int{"org/m": 2})
		checker.Forget([]string{"org/m"})
		if err := errors.Join(checker.Usable(engines), ask(engine("org", "m"))); err != nil {
			t.Errorf("after the reset: %v", err)
		}
		if all = g.Statuses(); all[0].Limit != 0 || all[1].Limit != 2 {
			t.Errorf("%+v", all)
		}
	})
}

// TestForget checks that the results of one endpoint are dropped, and no others.
func TestForget(t *testing.T) {
	c := &Checker{Guards: &Guards{}, Clients: &Clients{
		Models:        map[string]pipeline.Model{"m": endsWith{errors.New("down")}},
		Organizations: map[string]*Clients{"org": {Models: map[string]pipeline.Model{"m": endsWith{errors.New("down")}}}},
	}}
	for _, orgID := range []string{"", "org"} {
		p := c.candidates(pipeline.Engines{LLM: pipeline.Engine{OrgID: orgID, Provider: "m"}})[1][0]
		c.store(p, c.probe(t.Context(), p))
	}
	c.Forget([]string{"org/m"})
	if len(c.last) != 1 {
		t.Errorf("%+v", c.last)
	}
	for k := range c.last {
		if k.endpoint != "m" {
			t.Errorf("%+v", k)
		}
	}
}

// TestReset checks that failures of requests with former settings do not open the breaker, and that these requests
// still count against the limit.
func TestReset(t *testing.T) {
	g := &Guards{Limits: map[string]int{"m": 1}}
	old, err := g.of("llm", "m").begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	former := g.of("llm", "m")
	g.Reset([]string{"m"})
	if _, err = g.of("llm", "m").begin(t.Context()); !errors.Is(err, ErrBusy) {
		t.Errorf("a second request: %v", err)
	}
	old.finish(errors.New("401"))
	for range maxFailures - 1 {
		v, err := former.begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v.finish(errors.New("401"))
	}
	if v, err := g.of("llm", "m").begin(t.Context()); err != nil {
		t.Errorf("with the new settings: %v", err)
	} else {
		v.finish(nil)
	}
	if g.Reset([]string{"m"}); len(g.Statuses()) != 0 {
		t.Error("an endpoint that is gone has a status")
	}
}
