package book

import "testing"

// TestOtherMarket: a campaign whose organization goes by the law of another market by
// now calls nobody, until it goes by the campaign's own again.
func TestOtherMarket(t *testing.T) {
	s := open(t)
	s.fill(1, 1)
	s.exec("UPDATE campaigns SET market = 'us'")
	if got := s.take(s.fresh()); got != "" {
		t.Errorf("%q of a list that was read by the law of another market is called", got)
	}
	s.exec("UPDATE campaigns SET market = 'kz'")
	if got := s.take(s.fresh()); got != "con_1" {
		t.Errorf("%q is called by the campaign's own law", got)
	}
}

// TestReassigned: whose number was reassigned since the consent is not called, though
// that became known while a call to it was on; who consented since is.
func TestReassigned(t *testing.T) {
	s := open(t)
	s.fill(2, 1)
	s.exec("UPDATE contacts SET consent_at = now() - interval '1 year' WHERE id = 'con_1'")
	s.exec("UPDATE contacts SET consent_at = now() + interval '3 days' WHERE id = 'con_2'")
	s.exec(`INSERT INTO reassigned_numbers (org_id, number, consent_on, result) VALUES
		($1, '+77010000001', current_date - 300, 'yes'), ($1, '+77010000002', current_date, 'yes'), ($1, '+77010000002', current_date + 9, 'no')`, s.org)
	if got := s.take(s.fresh()); got != "con_2" {
		t.Errorf("%q is called", got)
	}
	if got := s.text("SELECT state || ' ' || reason FROM contacts WHERE id = 'con_1'"); got != "suppressed reassigned_number" {
		t.Errorf("the other is %s", got)
	}
}
