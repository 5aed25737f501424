package campaigns_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/campaigns/sources"
	"github.com/parley-voice/parley/campaigns/tallies"
	"github.com/parley-voice/parley/control/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// TestNumbersAreAddedOnce by a form, however often it is sent: who comes twice is
// called twice.
func TestNumbersAreAddedOnce(t *testing.T) {
	h := dashtest.New(t)
	ids := h.Furnish(t, "sales")
	at := "campaigns/" + ids["campaigns"] + "/calls"
	b := h.SignIn(t, "oscar")
	send := func(once, lines string) dashtest.Answer {
		return b.Post(at, "lines", lines, "attest", "on", "once", once)
	}
	const ada = "+1 212 555 0188, Ada"
	if a := send("", ada); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("of a form that may come again: %d", a.Status)
	}
	if a := send("a", "nonsense"); !strings.Contains(a.To(), "/imports/") {
		t.Errorf("what cannot be read: %d %s", a.Status, a.Text())
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
	if a := b.Follow(at, "lines", ada, "attest", "on", "once", "a"); !strings.Contains(a.Text(), "These were added already") {
		t.Errorf("again: %s", a.Text())
	}
	if a := send("a", "+1 212 555 0189"); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Text(), "was sent before") {
		t.Errorf("others, by the same form: %d %s", a.Status, a.Text())
	}
	count := func() (n int) {
		if err := h.DB.Pool.QueryRow(t.Context(), "SELECT count(*) FROM contacts WHERE number = '+12125550188'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(); n != 1 {
		t.Errorf("she is called %d times", n)
	}
	if send("b", ada); count() != 2 {
		t.Error("by another form she is not added again")
	}
}

// full is a bucket that takes nothing.
type full struct{ sources.Bucket }

func (full) Put(context.Context, string, io.Reader) error { return errors.New("it is full") }

// TestTheListIsNotTaken says so, however often the form is sent.
func TestTheListIsNotTaken(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.House) { h.Dashboard.Campaigns.Desk.Bucket = full{h.Dashboard.Bucket} })
	h.Sell(t, "us", true)
	b := h.SignIn(t, "oscar")
	if a := b.Post("campaigns/new", "once", "k"); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Text(), "Choose a file, or type numbers.") {
		t.Errorf("no list at all: %d %s", a.Status, a.Text())
	}
	list := func() string { return b.Post("campaigns/new", "once", "l", "lines", "+1 212 555 0188, Ada").To() }
	_, upload, _ := strings.Cut(list(), "?")
	if again := list(); upload == "" || !strings.HasSuffix(again, upload) {
		t.Errorf("a list that is sent again leads to %s, before to %s", again, upload)
	}
	for range 2 {
		a := b.Follow("campaigns/draft?"+upload, "once", "a", "name", "Spring", "agent", "sales", "classification", "marketing", "pace", "20", "attempts", "1", "interval", "15", "duplicates", "keep_first")
		if !strings.Contains(a.Text(), "its list could not be taken: the rows could not be kept") {
			t.Errorf("it says %s", a.Text())
		}
	}
	var campaigns, entries int
	if err := h.DB.Pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM campaigns), (SELECT count(*) FROM audit_log)").Scan(&campaigns, &entries); err != nil || campaigns != 1 || entries != 1 {
		t.Errorf("%d campaigns, %d entries, %v", campaigns, entries, err)
	}
}

// TestOneFormMakesOneCampaign, however often it is sent; what was refused may be sent again.
func TestOneFormMakesOneCampaign(t *testing.T) {
	h := dashtest.New(t)
	h.Sell(t, "us", true)
	b := h.SignIn(t, "oscar")
	form := func(once, name, attempts string) dashtest.Answer {
		return b.Post("campaigns/draft", "once", once, "name", name, "agent", "sales", "classification", "marketing", "pace", "20", "attempts", attempts, "interval", "15", "duplicates", "keep_first")
	}
	if a := form("", "Spring", "1"); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("of a form that may come again: %d", a.Status)
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
			if to[a.To()]++; a.Status != http.StatusSeeOther && a.Status != http.StatusUnprocessableEntity {
				t.Errorf("%d %s", a.Status, a.Text())
			}
		})
	}
	all.Wait()
	again := form("a", "Spring", "1")
	if to[again.To()] == 0 || !strings.Contains(b.Get(again.To()).Text(), "a form makes one") {
		t.Errorf("again it leads to %s, before to %v", again.To(), to)
	}
	if a := form("a", "Autumn", "1"); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("another, by the same form: %d", a.Status)
	}
	if a := form("b", "Spring", "1"); a.To() == again.To() {
		t.Error("another form makes none")
	}
	var n int
	if err := h.DB.Pool.QueryRow(t.Context(), "SELECT count(*) FROM campaigns").Scan(&n); err != nil || n != 2 {
		t.Errorf("there are %d campaigns, %v", n, err)
	}
}

// TestTheListChanged: the page of a draft tells what was found of its list before, and
// when; nothing is launched on that. Asked anew it is what there is now.
func TestTheListChanged(t *testing.T) {
	h := dashtest.New(t)
	h.Sell(t, "us", true)
	b := h.SignIn(t, "oscar")
	_, upload, _ := strings.Cut(b.Post("campaigns/new", "once", "l", "lines", "+1 212 555 0188, Ada\n+1 212 555 0189, Bob").To(), "?")
	to := b.Post("campaigns/draft?"+upload, "once", "a", "name", "Spring", "agent", "sales", "classification", "marketing", "pace", "20", "attempts", "1", "interval", "15", "duplicates", "keep_first").To()
	shows := func(path string, want ...string) {
		t.Helper()
		a := b.Get(path)
		for _, text := range want {
			if not, without := strings.CutPrefix(text, "!"); strings.Contains(a.Text(), not) == without {
				t.Errorf("%s: %q is to be there, and is not: %s", path, text, a.Text())
			}
		}
	}
	shows(to, "!have changed since", "I confirm that each")
	for i, sql := range []string{"INSERT INTO suppressions (org_id, number) VALUES ($1, '12125550189')", "DELETE FROM suppressions WHERE org_id = $1"} {
		if _, err := h.DB.Pool.Exec(t.Context(), sql, h.Acme); err != nil {
			t.Fatal(err)
		}
		if err := (&tallies.Tallies{Pool: h.DB.Pool}).Fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		shows(to, "have changed since", "!I confirm that each")
		now := []string{"1 number is on a list", "!1 number is on a list"}[i]
		shows(to+"?anew=1", "!have changed since", now, "I confirm that each")
		shows(to, "!have changed since", now, "I confirm that each")
	}
}
