package campaigns_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
)

var (
	inputs  = regexp.MustCompile(`<(input|textarea|select)[^>]* name="([^"]+)"[^>]*>`)
	valueOf = regexp.MustCompile(` value="([^"]*)"`)
	chosen  = regexp.MustCompile(`<option value="([^"]*)" selected>`)
)

// fieldsOf returns the fields of the form on a page as a browser would send them.
func fieldsOf(body string) (all []string) {
	_, form, _ := strings.Cut(body, `<form method="post" class="form`)
	for _, at := range inputs.FindAllStringSubmatchIndex(form, -1) {
		tag, kind, name, value := form[at[0]:at[1]], form[at[2]:at[3]], form[at[4]:at[5]], ""
		switch rest := form[at[1]:]; {
		case kind == "select":
			list, _, _ := strings.Cut(rest, "</select>")
			if m := chosen.FindStringSubmatch(list); m != nil {
				value = m[1]
			}
		case kind == "textarea":
			value, _, _ = strings.Cut(strings.TrimPrefix(rest, "\n"), "</textarea>")
		case strings.Contains(tag, `type="checkbox"`) && !strings.Contains(tag, " checked"):
			continue
		default:
			if m := valueOf.FindStringSubmatch(tag); m != nil {
				value = m[1]
			}
		}
		all = append(all, name, strings.NewReplacer("&#43;", "+", "&#34;", `"`, "&amp;", "&").Replace(value))
	}
	return all
}

// with returns fields with other values.
func with(all []string, pairs ...string) []string {
	all = slices.Clone(all)
	for i := 0; i < len(pairs); i += 2 {
		for j := 0; j < len(all); j += 2 {
			if all[j] == pairs[i] {
				all[j+1] = pairs[i+1]
			}
		}
	}
	return all
}

const listRows = "+1 212 555 0188, Ada\n+1 212 555 0189, Bob\n+1 310 555 0190, Eve"

// newDraft creates a draft with a list, and returns the path of its page.
func newDraft(t *testing.T, b *dashtest.Browser) string {
	t.Helper()
	_, upload, _ := strings.Cut(b.Post("campaigns/new", "once", "l", "lines", listRows).Location(), "?")
	to := b.Post("campaigns/draft?"+upload, "once", "a", "name", "Spring", "agent", "sales", "classification", "marketing", "pace", "20", "attempts", "2", "interval", "15",
		"duplicates", "keep_first", "days", "0", "days", "1", "from_hour", "10:00", "to_hour", "16:00", "budget", "12.5").Location()
	if !strings.Contains(to, "campaigns/cmp_") {
		t.Fatalf("the draft is at %q", to)
	}
	return to
}

// TestFormOfPreviousRelease checks that a form which was opened before an upgrade keeps its trunk and subgroup.
func TestFormOfPreviousRelease(t *testing.T) {
	h := dashtest.New(t)
	h.AddSales(t, "us", true)
	b := h.SignIn(t, "oscar")
	page := newDraft(t, b)
	form := fieldsOf(b.Get(page + "/edit").Body)
	h.Exec(t, `WITH second AS (INSERT INTO subgroups (id, org_id, trunk_id, name, concurrent_calls, calls_per_minute)
		SELECT 'rte_2', org_id, trunk_id, 'second', 10, 60 FROM subgroups RETURNING id, org_id)
		INSERT INTO subgroup_agents (org_id, subgroup_id, agent_id) SELECT second.org_id, second.id, a.agent_id FROM second, subgroup_agents a`)
	form[slices.Index(form, "subgroup")] = "line"
	if a := b.Post(page+"/edit", form...); a.Status != http.StatusSeeOther {
		t.Errorf("%d %s", a.Status, a.Text())
	}
}

// TestEditDraft checks that the form of a draft shows its settings, saves what is changed, keeps the contacts, and
// refuses what a new campaign refuses, a stale form, and a campaign that was launched.
func TestEditDraft(t *testing.T) {
	h := dashtest.New(t)
	h.AddSales(t, "us", true)
	b := h.SignIn(t, "oscar")
	page := newDraft(t, b)
	before := h.Text(t, "SELECT to_jsonb(c) - 'updated_at' - 'seen_fingerprint' FROM campaigns c")
	form := fieldsOf(b.Get(page + "/edit").Body)
	if slices.Contains(form, "duplicates") || !slices.Contains(form, "seen") {
		t.Fatalf("the form has %q", form)
	}
	if a := b.Post(page+"/edit", form...); a.Status != http.StatusSeeOther {
		t.Fatalf("unchanged: %d %s", a.Status, a.Text())
	}
	if after := h.Text(t, "SELECT to_jsonb(c) - 'updated_at' - 'seen_fingerprint' FROM campaigns c"); after != before {
		t.Errorf("the form changed the settings:\n%s\n%s", before, after)
	}
	for field, c := range map[string][2]string{
		"name": {"", "name must have"}, "pace": {"7", "calls_per_minute must be"}, "attempts": {"x", "whole number"},
		"from_hour": {"05:00", "exceeds the calling window"}, "timezone": {"Mars/Base", "IANA time zone"},
	} {
		if a := b.Post(page+"/edit", with(form, field, c[0])...); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Text(), c[1]) {
			t.Errorf("%s %q: %d %s", field, c[0], a.Status, a.Text())
		}
	}
	a := b.Follow(page+"/edit", with(form, "name", "Autumn", "pace", "5", "from_hour", "11:00", "attempts", "3", "budget", "", "classification", "servicing")...)
	for _, want := range []string{"Settings saved.", "Autumn", "Servicing, agent sales, 5 calls per minute", "Mon–Tue 11:00 AM–4:00 PM", "at most 3 attempts", "no limit", "settings changed by oscar"} {
		if !strings.Contains(a.Text(), want) {
			t.Errorf("the page does not say %q: %s", want, a.Text())
		}
	}
	if n := h.Count(t, "SELECT count(*) FROM contacts WHERE state = 'pending'"); n != 3 {
		t.Errorf("%d contacts", n)
	}
	if a := b.Post(page+"/edit", with(form, "name", "Winter")...); a.Status != http.StatusConflict || !strings.Contains(a.Text(), "someone else changed this") {
		t.Errorf("a stale form: %d %s", a.Status, a.Text())
	}
	form = fieldsOf(b.Get(page + "/edit").Body)
	h.Exec(t, "UPDATE campaigns SET status = 'running', launched_at = now()")
	if a := b.Follow(page+"/edit", form...); !strings.Contains(a.Text(), "a running campaign cannot be edited") {
		t.Errorf("running: %d %s", a.Status, a.Text())
	}
	if log := h.Text(t, "SELECT string_agg(action, ' ' ORDER BY id) FROM audit_log WHERE action LIKE 'campaign.%'"); log != "campaign.create campaign.edit campaign.edit" {
		t.Errorf("the audit log has %s", log)
	}
}

// TestEditAndConsent checks that a draft is launched only with the settings that the person saw, and that its purpose stays
// once numbers were added with consent for it.
func TestEditAndConsent(t *testing.T) {
	h := dashtest.New(t)
	h.AddSales(t, "us", true)
	b := h.SignIn(t, "oscar")
	page := newDraft(t, b)
	seen := regexp.MustCompile(`name="import" value="([^"]*)"><input type="hidden" name="seen" value="([^"]+)"`).FindStringSubmatch(
		regexp.MustCompile(`>\s+<`).ReplaceAllString(b.Get(page).Body, "><"))
	if seen == nil {
		t.Fatal("the form of the launch names no settings")
	}
	edit := func(purpose string) dashtest.Answer {
		return b.Follow(page+"/edit", with(fieldsOf(b.Get(page+"/edit").Body), "classification", purpose)...)
	}
	if a := edit("servicing"); !strings.Contains(a.Text(), "Settings saved.") {
		t.Fatal(a.Text())
	}
	a := b.Follow(page+"/launch", "import", seen[1], "seen", seen[2], "attest", "on")
	if !strings.Contains(a.Text(), "someone changed the settings") || h.Text(t, "SELECT status FROM campaigns") != "draft" || h.Count(t, "SELECT count(*) FROM attestations") != 0 {
		t.Errorf("launched with other settings: %s", a.Text())
	}
	h.Exec(t, `INSERT INTO imports SELECT (jsonb_populate_record(i, '{"id": "imp_batch", "kind": "batch", "source_key": null}')).* FROM imports i`)
	if a = edit("marketing"); !strings.Contains(a.Text(), "the purpose cannot be changed, because numbers were added with consent to servicing calls") {
		t.Errorf("another purpose after a batch: %s", a.Text())
	}
	if a = edit("servicing"); !strings.Contains(a.Text(), "Settings saved.") {
		t.Errorf("the same purpose after a batch: %s", a.Text())
	}
}

// TestEditKeepsHours checks that working hours with several parts, which the form cannot show, stay.
func TestEditKeepsHours(t *testing.T) {
	h := dashtest.New(t)
	h.AddSales(t, "us", true)
	b := h.SignIn(t, "oscar")
	page := newDraft(t, b)
	const parts = `[{"days": [0], "start": "09:00", "end": "12:00"}, {"days": [0], "start": "13:00", "end": "17:00"}]`
	h.Exec(t, "UPDATE campaigns SET working_hours = $1", parts)
	form := fieldsOf(b.Get(page + "/edit").Body)
	if a := b.Post(page+"/edit", with(form, "name", "Autumn")...); a.Status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.Status, a.Text())
	}
	if got := h.Text(t, "SELECT name || ' ' || (working_hours::jsonb = $1::jsonb) FROM campaigns", parts); got != "Autumn true" {
		t.Errorf("%s", got)
	}
}

// TestDuplicate checks that a copy has the settings and the chosen contacts, but neither consent nor attestation.
func TestDuplicate(t *testing.T) {
	h := dashtest.New(t)
	h.AddSales(t, "us", true)
	b := h.SignIn(t, "oscar")
	page := newDraft(t, b)
	first := h.Text(t, "SELECT id FROM campaigns")
	h.Exec(t, "UPDATE campaigns SET status = 'running', starts_at = now() - interval '1 day', launched_at = now()")
	h.Exec(t, `UPDATE contacts SET consent_at = now(), variables = '{"city": "Rome, \"Lazio\""}', timezone = 'America/New_York',
		state = (ARRAY['done', 'exhausted', 'pending'])[row_number] FROM (SELECT id AS of, row_number() OVER (ORDER BY n) FROM contacts) x WHERE id = of`)
	copied := func(choice string) string {
		t.Helper()
		to := b.Post(page+"/duplicate", "contacts", choice)
		if !strings.Contains(to.Location(), "like="+url.QueryEscape(first)) {
			t.Fatalf("%s: %d %s", choice, to.Status, to.Text())
		}
		form := fieldsOf(b.Get(to.Location()).Body)
		if i := slices.Index(form, "name"); form[i+1] != "Spring (copy)" {
			t.Errorf("the form has %q", form)
		}
		a := b.Post(to.Location(), form...)
		if a.Status != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", choice, a.Status, a.Text())
		}
		return a.Location()[strings.LastIndex(a.Location(), "/")+1:]
	}
	for choice, want := range map[string]string{
		"none": "", "not_reached": "+12125550189 +13105550190", "all": "+12125550188 +12125550189 +13105550190",
	} {
		id := copied(choice)
		if got := h.Text(t, "SELECT coalesce(string_agg(number, ' ' ORDER BY number), '') FROM contacts WHERE campaign_id = $1", id); got != want {
			t.Errorf("%s: contacts %s, want %s", choice, got, want)
		}
		if n := h.Count(t, "SELECT count(*) FROM contacts WHERE campaign_id = $1 AND (consent_at IS NOT NULL OR attempts > 0 OR variables ->> 'city' <> 'Rome, \"Lazio\"')", id); n > 0 {
			t.Errorf("%s: %d contacts with a consent, attempts or other variables", choice, n)
		}
		same := h.Text(t, `SELECT string_agg(name || ' ' || status || ' ' || calls_per_minute || ' ' || working_hours || ' ' || retry || ' ' || budget_nano || ' ' || route_id, '|')
			FROM campaigns WHERE id = $1`, id)
		if want := h.Text(t, `SELECT string_agg('Spring (copy) draft ' || calls_per_minute || ' ' || working_hours || ' ' || retry || ' ' || budget_nano || ' ' || route_id, '|')
			FROM campaigns WHERE id = $1`, first); same != want {
			t.Errorf("%s: %s, want %s", choice, same, want)
		}
		if n := h.Count(t, "SELECT count(*) FROM attestations WHERE campaign_id = $1", id); n > 0 {
			t.Errorf("%s: %d attestations", choice, n)
		}
	}
	h.Exec(t, "UPDATE contacts SET state = 'done' WHERE campaign_id = $1", first)
	if a := b.Post(page+"/duplicate", "contacts", "not_reached"); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Text(), "There are no such contacts.") {
		t.Errorf("none: %d %s", a.Status, a.Text())
	}
}
