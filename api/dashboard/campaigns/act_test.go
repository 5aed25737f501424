package campaigns_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// TestAddNumbersOnce checks that a repeated form adds its numbers once; another form adds them again.
func TestAddNumbersOnce(t *testing.T) {
	h := dashtest.New(t)
	ids := h.Furnish(t, "sales")
	at := "campaigns/" + ids["campaigns"] + "/calls"
	b := h.SignIn(t, "oscar")
	send := func(once, lines string) dashtest.Answer {
		return b.Post(at, "lines", lines, "attest", "on", "once", once)
	}
	const ada = "+1 212 555 0188, Ada"
	if a := send("", ada); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("a form without its key: %d", a.Status)
	}
	if a := send("a", "nonsense"); !strings.Contains(a.Location(), "/imports/") {
		t.Errorf("unreadable numbers: %d %s", a.Status, a.Text())
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if a := send("a", ada); a.Status != http.StatusSeeOther && a.Status != http.StatusUnprocessableEntity {
				t.Errorf("%d %s", a.Status, a.Text())
			}
		})
	}
	both.Wait()
	if a := b.Follow(at, "lines", ada, "attest", "on", "once", "a"); !strings.Contains(a.Text(), "already added with this form") {
		t.Errorf("again: %s", a.Text())
	}
	if a := send("a", "+1 212 555 0189"); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Text(), "was already submitted") {
		t.Errorf("other numbers with the same form: %d %s", a.Status, a.Text())
	}
	count := func() int { return h.Count(t, "SELECT count(*) FROM contacts WHERE number = '+12125550188'") }
	if n := count(); n != 1 {
		t.Errorf("%d contacts, want 1", n)
	}
	if send("b", ada); count() != 2 {
		t.Error("another form does not add the number again")
	}
}

// full is a bucket that stores nothing.
type full struct{ store.Bucket }

func (full) Put(context.Context, string, io.Reader) error { return errors.New("disk full") }

// TestListNotStored checks that a failure to store the list is reported, also for a repeated form.
func TestListNotStored(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Campaigns.Service.Bucket = full{h.Dashboard.Bucket} })
	h.AddSales(t, "us", true)
	b := h.SignIn(t, "oscar")
	if a := b.Post("campaigns/new", "once", "k"); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Text(), "Choose a file or enter numbers.") {
		t.Errorf("no list: %d %s", a.Status, a.Text())
	}
	list := func() string { return b.Post("campaigns/new", "once", "l", "lines", "+1 212 555 0188, Ada").Location() }
	_, upload, _ := strings.Cut(list(), "?")
	if again := list(); upload == "" || !strings.HasSuffix(again, upload) {
		t.Errorf("a repeated upload leads to %s, the first to %s", again, upload)
	}
	for range 2 {
		a := b.Follow("campaigns/draft?"+upload, "once", "a", "name", "Spring", "agent", "sales", "classification", "marketing", "pace", "20", "attempts", "1", "interval", "15", "duplicates", "keep_first")
		if !strings.Contains(a.Text(), "its list was not imported: the rows could not be stored") {
			t.Errorf("the page says %s", a.Text())
		}
	}
	var campaigns, entries int
	if err := h.DB.Pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM campaigns), (SELECT count(*) FROM audit_log WHERE action NOT LIKE 'sign-%')").Scan(&campaigns, &entries); err != nil || campaigns != 1 || entries != 1 {
		t.Errorf("%d campaigns, %d entries, %v", campaigns, entries, err)
	}
}

// TestCreateOnce checks that a repeated form creates one campaign; a rejected form can be sent again.
func TestCreateOnce(t *testing.T) {
	h := dashtest.New(t)
	h.AddSales(t, "us", true)
	b := h.SignIn(t, "oscar")
	form := func(once, name, attempts string) dashtest.Answer {
		return b.Post("campaigns/draft", "once", once, "name", name, "agent", "sales", "classification", "marketing", "pace", "20", "attempts", attempts, "interval", "15", "duplicates", "keep_first")
	}
	if a := form("", "Spring", "1"); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("a form without its key: %d", a.Status)
	}
	if a := form("a", "", "1"); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("without a name: %d %s", a.Status, a.Text())
	}
	to := map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			a := form("a", "Spring", "1")
			mu.Lock()
			defer mu.Unlock()
			if to[a.Location()]++; a.Status != http.StatusSeeOther && a.Status != http.StatusUnprocessableEntity {
				t.Errorf("%d %s", a.Status, a.Text())
			}
		})
	}
	all.Wait()
	again := form("a", "Spring", "1")
	if to[again.Location()] == 0 || !strings.Contains(b.Get(again.Location()).Text(), "was already created") {
		t.Errorf("a repetition leads to %s, the first to %v", again.Location(), to)
	}
	if a := form("a", "Autumn", "1"); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("another campaign with the same form: %d", a.Status)
	}
	if a := form("b", "Spring", "1"); a.Location() == again.Location() {
		t.Error("another form creates no campaign")
	}
	if n := h.Count(t, "SELECT count(*) FROM campaigns"); n != 2 {
		t.Errorf("%d campaigns", n)
	}
}

// TestScreeningAge checks that the page of a draft shows the age of its screening, which cannot be launched after a change; a
// rescreen updates it.
func TestScreeningAge(t *testing.T) {
	h := dashtest.New(t)
	h.AddSales(t, "us", true)
	b := h.SignIn(t, "oscar")
	_, upload, _ := strings.Cut(b.Post("campaigns/new", "once", "l", "lines", "+1 212 555 0188, Ada\n+1 212 555 0189, Bob").Location(), "?")
	to := b.Post("campaigns/draft?"+upload, "once", "a", "name", "Spring", "agent", "sales", "classification", "marketing", "pace", "20", "attempts", "1", "interval", "15", "duplicates", "keep_first").Location()
	shows := func(path string, want ...string) {
		t.Helper()
		a := b.Get(path)
		for _, text := range want {
			if not, without := strings.CutPrefix(text, "!"); strings.Contains(a.Text(), not) == without {
				t.Errorf("%s: want %q: %s", path, text, a.Text())
			}
		}
	}
	shows(to, "!have changed since", "I confirm that each")
	for i, sql := range []string{"INSERT INTO suppressions (org_id, number) VALUES ($1, '12125550189')", "DELETE FROM suppressions WHERE org_id = $1"} {
		h.Exec(t, sql, h.Acme)
		if err := (&store.TallyFolder{Pool: h.DB.Pool}).Fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		shows(to, "have changed since", "!I confirm that each")
		now := []string{"1 number is on a do-not-call list", "!1 number is on a do-not-call list"}[i]
		shows(to+"?anew=1", "!have changed since", now, "I confirm that each")
		shows(to, "!have changed since", now, "I confirm that each")
	}
}

// TestReopen checks that a button calls contacts again whose last attempt failed because of the service, once; the audit log names the
// operator.
func TestReopen(t *testing.T) {
	h := dashtest.New(t)
	ids := h.Furnish(t, "sales")
	id := ids["campaigns"]
	h.Exec(t, "UPDATE contacts SET state = 'exhausted', fault = 'agent_error', attempts = 1 WHERE id = (SELECT min(id) FROM contacts WHERE campaign_id = $1 AND state = 'pending')", id)
	h.Exec(t, "INSERT INTO attempt_tallies (campaign_id, outcome, n) VALUES ($1, 'failed', 1)", id)
	h.Exec(t, "UPDATE campaigns SET status = 'running' WHERE id = $1", id)
	b := h.SignIn(t, "oscar")
	if page := b.Get("campaigns/" + id); !strings.Contains(page.Text(), "the last call of 1 contact. It has no attempts left.") {
		t.Errorf("%s", page.Text())
	}
	for _, want := range []string{"1 contact will be called again.", "No contact needs another call."} {
		if page := b.Follow("campaigns/" + id + "/reopen"); !strings.Contains(page.Text(), want) {
			t.Errorf("no %q in %s", want, page.Text())
		}
	}
	var left, logged int
	err := h.DB.Pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM contacts WHERE fault <> ''), (SELECT count(*) FROM audit_log WHERE action = 'campaign.reopen')").Scan(&left, &logged)
	if err != nil || left != 0 || logged != 1 {
		t.Errorf("%d contacts left, %d log entries, %v", left, logged, err)
	}
	h.Exec(t, "UPDATE campaigns SET status = 'cancelled' WHERE id = $1", id)
	if page := b.Follow("campaigns/" + id + "/reopen"); !strings.Contains(page.Text(), "Nothing was changed") {
		t.Errorf("%s", page.Text())
	}
}

// TestBudget checks that an operator sets the budget of a campaign and sees its use.
func TestBudget(t *testing.T) {
	h := dashtest.New(t)
	id := h.Furnish(t, "sales")["campaigns"]
	b := h.SignIn(t, "oscar")
	if text := b.Get("campaigns/" + id).Text(); strings.Contains(text, "In progress (expected)") {
		t.Errorf("a campaign without a budget: %s", text)
	}
	h.Exec(t, "INSERT INTO cost_tallies (owner, slot, cost_nano) VALUES ($1, '-infinity', 2500000000)", id)
	if a := b.Post("campaigns/"+id+"/budget", "budget", "0"); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("a budget of 0: %d", a.Status)
	}
	if text := b.Follow("campaigns/"+id+"/budget", "budget", "10.5").Text(); !strings.Contains(text, "Budget saved.") || !strings.Contains(text, "2.50 of 10.50 USD spent") {
		t.Errorf("the campaign: %s", text)
	}
	if n := h.Count(t, "SELECT count(*) FROM campaign_log WHERE action = 'budget_set' AND detail = '10.5'"); n != 1 {
		t.Errorf("%d log entries", n)
	}
	if a := b.Get("campaigns/" + id + "/budget"); !strings.Contains(a.Body, `value="10.5"`) || !strings.Contains(a.Text(), "USD") {
		t.Errorf("the form: %s", a.Text())
	}
	if text := b.Get("campaigns/" + id).Text(); !strings.Contains(text, "Cost of ended calls Total 2.50") {
		t.Errorf("the cost: %s", text)
	}
	b.Follow("campaigns/"+id+"/budget", "budget", "")
	if n := h.Count(t, "SELECT count(*) FROM campaigns WHERE id = $1 AND budget_nano IS NULL", id); n != 1 {
		t.Error("the budget is not removed")
	}
}

// TestPauseAll pauses all campaigns: one is launched after the confirmation, one fails, and one is scheduled.
func TestPauseAll(t *testing.T) {
	h := dashtest.New(t)
	first := h.Furnish(t, "sales")["campaigns"]
	copied := func(name, status string) {
		h.Exec(t, `UPDATE campaigns SET status = $2 WHERE name = $1`, name, status)
	}
	const same = dashtest.CampaignColumns
	h.Exec(t, "INSERT INTO campaigns (id, name, status, starts_at, "+same+") SELECT 'cmp_' || x.name, x.name, 'draft', now() + interval '1 h', "+same+
		" FROM campaigns c, (VALUES ('late'), ('broken'), ('tomorrow')) AS x (name) WHERE c.id = $1", first)
	copied("broken", "running")
	copied("tomorrow", "scheduled")
	h.Exec(t, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'secret detail'; END $$`)
	h.Exec(t, "CREATE TRIGGER fail BEFORE UPDATE ON campaigns FOR EACH ROW WHEN (NEW.status = 'paused' AND NEW.name = 'broken') EXECUTE FUNCTION fail()")
	b := h.SignIn(t, "oscar")
	if !strings.Contains(b.Get("live").Body, `danger" href="`+b.URL("campaigns/pause")+`"`) || strings.Contains(h.SignIn(t, "vera").Get("live").Body, "campaigns/pause") {
		t.Error("the button on the Live page is missing, or a viewer has it")
	}
	ask := b.Get("campaigns/pause")
	if text := ask.Text(); !strings.Contains(text, "2 campaigns will be paused.") || !strings.Contains(text, "1 scheduled campaign will still start: tomorrow") || !strings.Contains(text, "1 call is active.") {
		t.Errorf("%s", text)
	}
	if crumb := `<li><a href="` + b.URL("campaigns") + `">Campaigns</a>`; !strings.Contains(ask.Body, crumb) {
		t.Error("the page belongs to Campaigns in the menu only")
	}
	if n := strings.Count(ask.Body, `class="button first"`) + strings.Count(ask.Body, `class="button danger"`); n != 1 {
		t.Errorf("%d primary buttons", n)
	}
	copied("late", "running")
	listed := regexp.MustCompile(`name="listed" value="([^"]*)"`).FindStringSubmatch(ask.Body)[1]
	page := b.Follow("campaigns/pause", "listed", listed)
	for _, want := range []string{
		"2 campaigns paused. Active calls continue. Also paused, launched just now: late. Not paused: broken (internal error; try again). Scheduled, and will still start: tomorrow.",
	} {
		if !strings.Contains(page.Text(), want) {
			t.Errorf("no %q in %s", want, page.Text())
		}
	}
	if !strings.Contains(page.Body, b.URL("campaigns/"+first)) || strings.Contains(page.Text(), "secret detail") {
		t.Errorf("%s", page.Body)
	}
	if n := h.Count(t, "SELECT count(*) FROM audit_log WHERE action = 'campaign.pause' AND who = 'oscar@example.com' AND after->>'all' = 'true'"); n != 2 {
		t.Errorf("%d audit entries", n)
	}
	if n := h.Count(t, "SELECT count(*) FROM campaigns WHERE status = 'paused'"); n != 2 {
		t.Errorf("%d campaigns are paused", n)
	}
	h.Exec(t, "DROP TRIGGER fail ON campaigns")
	if text := b.Follow("campaigns/pause", "listed", "cmp_broken").Text(); !strings.Contains(text, "1 campaign paused. Active calls continue.") || strings.Contains(text, "just now") {
		t.Errorf("%s", text)
	}
	if text := b.Get("campaigns/pause").Text(); !strings.Contains(text, "No campaign is running.") {
		t.Errorf("%s", text)
	}
}
