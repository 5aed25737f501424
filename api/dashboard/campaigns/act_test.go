package campaigns_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
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
