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
