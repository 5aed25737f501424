package campaigns_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/store"
)

// createMany creates a running campaign of n contacts in all states, priorities and reasons.
func createMany(t *testing.T, h *dashtest.Env, n int) string {
	t.Helper()
	h.AddSales(t, "us", true)
	rows := make([]json.RawMessage, n)
	for i := range rows {
		rows[i] = json.RawMessage(fmt.Sprintf(`{"phone": "+12122%06d", "name": "Ada %d", "priority": %d}`, i, i, i%4))
	}
	st, err := h.Dashboard.Campaigns.Service.Create(t.Context(), h.Acme, service.Actor{Via: "api"}, service.CreateRequest{
		Spec: campaigns.Spec{Name: "Spring", Agent: "sales", CallsPerMinute: 20, Retry: json.RawMessage(`{"attempts": 3, "interval_s": 900}`)}, Rows: rows, Attested: true,
	}, nil, nil)
	if err != nil || st.Campaign.Status != campaigns.Running {
		t.Fatalf("%s, %+v, %v", st.Campaign.Status, st.Blockers, err)
	}
	h.Exec(t, `UPDATE contacts SET attempts = n % 3, state = (ARRAY['pending', 'pending', 'pending', 'awaiting', 'done', 'exhausted', 'suppressed'])[1 + n % 7],
		reason = CASE WHEN n % 7 = 6 THEN (ARRAY['geo_rejected', 'opted_out', 'dnc_suppressed'])[1 + n % 3] ELSE '' END,
		next_attempt_at = CASE WHEN n % 7 = 1 THEN now() + (1 + n % 5) * interval '1 hour' END,
		due_at = CASE WHEN n % 7 = 1 THEN now() + (1 + n % 5) * interval '1 hour' ELSE now() END WHERE campaign_id = $1`, st.Campaign.ID)
	return st.Campaign.ID
}

// TestContactPages checks that pages of any size together have every contact once, in order, also of one state or reason.
func TestContactPages(t *testing.T) {
	h := dashtest.New(t)
	id := createMany(t, h, 210)
	for where, f := range map[string]store.ContactFilter{
		"true": {}, "state = 'pending'": {State: campaigns.Pending}, "state = 'suppressed'": {State: campaigns.Suppressed},
		"reason = 'opted_out'": {State: campaigns.Suppressed, Reason: "opted_out"}, "state = 'in_call'": {State: campaigns.InCall},
	} {
		want := h.Text(t, `SELECT coalesce(string_agg(id, ' ' ORDER BY array_position(ARRAY['in_call', 'awaiting', 'pending', 'done', 'exhausted', 'suppressed'], state),
			reason, CASE WHEN state <> 'suppressed' THEN -priority END, next_attempt_at, id), '') FROM contacts WHERE campaign_id = $1 AND `+where, id)
		for _, most := range []int{1, 7, 50, 1000} {
			got := allPages(t, h, id, f, most)
			if strings.Join(got, " ") != want {
				t.Errorf("%s by %d: %d contacts, want %s", where, most, len(got), want)
			}
		}
	}
}

// TestReadiness checks that the lists of ready and of waiting contacts together have each pending contact once, on pages of
// any size: some hours are closed, and some contacts wait for a time of their own or are too late.
func TestReadiness(t *testing.T) {
	h := dashtest.New(t)
	id := createMany(t, h, 210)
	h.Exec(t, `UPDATE contacts SET hours_group = (ARRAY['east', 'west', 'north'])[1 + n % 3],
		not_after = CASE WHEN n % 14 = 2 THEN now() END, due_at = CASE WHEN n % 14 = 10 THEN '-infinity' ELSE due_at END WHERE campaign_id = $1`, id)
	var now time.Time
	if err := h.DB.Pool.QueryRow(t.Context(), "SELECT now()").Scan(&now); err != nil {
		t.Fatal(err)
	}
	of := func(ready bool) store.ContactFilter {
		return store.ContactFilter{Readiness: &store.Readiness{Ready: ready, Now: now, Open: []string{"east", "north"}, Closed: []string{"west"}}}
	}
	for ready, where := range map[bool]string{true: "", false: "NOT"} {
		want := h.Text(t, `SELECT string_agg(id, ' ' ORDER BY priority DESC, due_at, id) FROM contacts
			WHERE campaign_id = $1 AND state = 'pending' AND `+where+` (hours_group <> 'west' AND coalesce(next_attempt_at <= $2, true) AND coalesce(not_after > $2, true))`, id, now)
		if strings.Count(want, " ") < 10 {
			t.Fatalf("ready %v: the test is ineffective: %s", ready, want)
		}
		for _, most := range []int{1, 7, 50, 1000} {
			if got := allPages(t, h, id, of(ready), most); strings.Join(got, " ") != want {
				t.Errorf("ready %v by %d: %d contacts\n%s, want\n%s", ready, most, len(got), strings.Join(got, " "), want)
			}
		}
	}
}

// allPages returns the ids of contacts that pages of a size together have.
func allPages(t *testing.T, h *dashtest.Env, id string, f store.ContactFilter, most int) (got []string) {
	t.Helper()
	for at := (store.ContactPosition{}); ; {
		page, err := h.Dashboard.Campaigns.Store.Contacts.Page(t.Context(), h.DB.Pool, h.Acme, id, f, at, most)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page {
			got, at = append(got, c.ID), f.Position(c)
		}
		if len(page) < most {
			return got
		}
	}
}

// TestContactReasons checks that the list says why contacts wait, when they are called next, and why others are not.
func TestContactReasons(t *testing.T) {
	h := dashtest.New(t)
	id := createMany(t, h, 210)
	h.Exec(t, `INSERT INTO contact_attempts (contact_id, n, org_id, campaign_id, number, call_id, outcome, began_at, ended_at)
		SELECT id, 1, org_id, campaign_id, number, 'call_of_' || n, 'no_answer', now(), now() FROM contacts WHERE campaign_id = $1 AND attempts > 0`, id)
	b := h.SignIn(t, "vera")
	at := "campaigns/" + id + "/contacts"
	first := b.Get(at)
	if text := first.Text(); !strings.Contains(text, "210 contacts") || !strings.Contains(text, "The analysis decides whether to call again") || !strings.Contains(text, "Skipped: opted out during a call (10)") {
		t.Errorf("the first page: %s", text)
	}
	pages, seen := 1, strings.Count(first.Text(), "+1 212 2")
	for next := first; ; pages++ {
		_, to, ok := strings.Cut(next.Body, `rel="next"`)
		if !ok {
			break
		}
		_ = to
		head := next.Body[:strings.Index(next.Body, `" rel="next"`)]
		link := strings.ReplaceAll(head[strings.LastIndex(head, `href="`)+6:], "&amp;", "&")
		next = b.Get(link)
		seen += strings.Count(next.Text(), "+1 212 2")
	}
	if pages != 5 || seen != 210 {
		t.Errorf("%d pages with %d contacts", pages, seen)
	}
	for show, want := range map[string]string{
		"opted_out": "Opted out during a call", "suppressed": "Outside this market", "exhausted": "No attempt is left", "pending": "No answer",
		"nonsense": "choose a state from the list",
	} {
		if text := b.Get(at + "?show=" + show).Text(); !strings.Contains(text, want) {
			t.Errorf("%s: %s", show, text)
		}
	}
	if text := b.Get(at + "?number=212-200-0003").Text(); !strings.Contains(text, "Ada 3") || strings.Contains(text, "Ada 4") || strings.Contains(text, "210 contacts") {
		t.Errorf("one number: %s", text)
	}
	for _, cursor := range []string{"x", "pending..99..con_1", "pending..1.x.con_1", "pending..1.999999999999999999.con_1"} {
		if text := b.Get(at + "?cursor=" + cursor).Text(); !strings.Contains(text, "The list has changed.") {
			t.Errorf("cursor %s: %s", cursor, text)
		}
	}
	tiles := b.Get("campaigns/" + id).Text()
	pending := 0 // ready or waiting, as the time of day decides
	for show, label := range map[string]string{"ready": "Ready", "waiting": "Waiting"} {
		n := 0
		for next := at + "?show=" + show; next != ""; {
			page := b.Get(next)
			rows := strings.Count(page.Body, `<th scope="row"`)
			if n += rows; rows != strings.Count(page.Body, ">"+show+"</span>") {
				t.Errorf("%s lists others: %s", show, page.Text())
			}
			before, _, more := strings.Cut(page.Body, `" rel="next"`)
			if next = ""; more {
				next = strings.ReplaceAll(before[strings.LastIndex(before, `href="`)+6:], "&amp;", "&")
			}
		}
		if tile := regexp.MustCompile(`(\d+) ` + label).FindStringSubmatch(tiles); tile == nil || tile[1] != strconv.Itoa(n) {
			t.Errorf("%d %s contacts are listed, and the campaign says %s", n, label, tiles)
		}
		pending += n
	}
	if want := h.Count(t, "SELECT count(*) FROM contacts WHERE campaign_id = $1 AND state = 'pending'", id); pending != want {
		t.Errorf("%d contacts are ready or waiting, want %d", pending, want)
	}
	h.Exec(t, "UPDATE campaigns SET status = 'paused' WHERE id = $1", id)
	if text := b.Get(at + "?show=pending").Text(); !strings.Contains(text, "Campaign is not running") {
		t.Errorf("paused: %s", text)
	}
	page := b.Get("campaigns/" + id).Text()
	states := slices.Collect(strings.SplitSeq(h.Text(t, "SELECT count(*) FILTER (WHERE attempts > 0 OR state IN ('awaiting', 'done')) || ' ' || count(*) FROM contacts WHERE campaign_id = $1", id), " "))
	if want := fmt.Sprintf("Dialed %s", states[0]); !strings.Contains(page, want) {
		t.Errorf("the campaign does not say %s: %s", want, page)
	}
}
