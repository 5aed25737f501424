package api_test

import (
	"strings"
	"testing"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dialer/pgqueue"
)

// TestDisclosures checks that a campaign's calls start with the required disclosures unless the campaign or its
// organization disabled them, and that the API shows this.
func TestDisclosures(t *testing.T) {
	h := newEnv(t)
	h.setMarket("us")
	c := h.campaign("k1", `,"planned_calls":[{"phone":"2125550123"}]`).json(t)
	id := c["campaign_id"].(string)
	text := func(language string) string {
		t.Helper()
		rules, err := h.campaigns.Markets.Package(t.Context(), h.db.Pool, "us", "")
		if err != nil {
			t.Fatal(err)
		}
		c := campaigns.Campaign{ID: id, OrgID: h.org, AgentID: h.agentID("sales")}
		disclosure, err := pgqueue.LoadDisclosure(t.Context(), h.db.Pool, h.campaigns.Store, c, rules)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := disclosure.Text(language)
		return got
	}
	set := func(sql string) {
		t.Helper()
		h.exec(sql)
	}
	for _, step := range []struct {
		sql, language, want string
	}{
		{"", "", "This is sales, calling for acme. I am an automated voice. This call is recorded. If you do not want"},
		{"", "es-MX", "Le habla sales, de parte de acme. Soy una voz"},
		{`UPDATE organizations SET settings = settings || '{"disclosures": {"agent": "Ada", "organization": "Acme Corporation"}}'`, "", "This is Ada, calling for Acme Corporation. "},
		{"UPDATE campaigns SET disclosures = false", "", ""},
		{"UPDATE campaigns SET disclosures = true", "", "This is Ada"},
		{`UPDATE organizations SET settings = settings || '{"disclosures": {"enabled": false}}'`, "", "This is sales"},
		{"UPDATE campaigns SET disclosures = NULL", "", ""},
	} {
		if step.sql != "" {
			set(step.sql)
		}
		got := text(step.language)
		warned := strings.Contains(codes(t, h.do("GET", "/v1/campaigns/"+id, "").json(t), "warnings"), "disclosures_disabled")
		if !strings.HasPrefix(got, step.want) || (step.want == "") != (got == "") || warned != (got == "") {
			t.Errorf("%s, %s: %q, warned %v; want %q", step.sql, step.language, got, warned, step.want)
		}
	}
}

func (h *env) agentID(name string) (id string) {
	h.t.Helper()
	if err := h.db.Pool.QueryRow(h.t.Context(), "SELECT id FROM agents WHERE org_id = $1 AND name = $2", h.org, name).Scan(&id); err != nil {
		h.t.Fatal(err)
	}
	return id
}
