package pgqueue

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/dialer"
	"github.com/parley-voice/parley/campaigns/market"
)

// TestOtherMarket checks that a campaign whose organization switched to another market makes no
// calls until it switches back.
func TestOtherMarket(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	s.exec("UPDATE campaigns SET market = 'us'")
	s.wantTake(s.newDialer(), "")
	s.exec("UPDATE campaigns SET market = 'kz'")
	s.wantTake(s.newDialer(), "con_1")
}

// TestReassigned checks that a number that was reassigned since the consent is not called, even if this became known
// during a call to it. A consent after the reassignment is valid.
func TestReassigned(t *testing.T) {
	s := newEnv(t)
	s.addContacts(2, 1)
	s.exec("UPDATE contacts SET consent_at = now() - interval '1 year' WHERE id = 'con_1'")
	s.exec("UPDATE contacts SET consent_at = now() + interval '3 days' WHERE id = 'con_2'")
	s.exec(`INSERT INTO reassigned_numbers (org_id, number, consent_on, result) VALUES
		($1, '+77010000001', current_date - 300, 'yes'), ($1, '+77010000002', current_date, 'yes'), ($1, '+77010000002', current_date + 9, 'no')`, s.org)
	s.wantTake(s.newDialer(), "con_2")
	s.wantQuery("suppressed reassigned_number", "SELECT state || ' ' || reason FROM contacts WHERE id = 'con_1'")
}

// TestNumberInMoreZones checks a number for which new market rules have more possible zones or states. Its contact
// waits until all of them allow the call.
func TestNumberInMoreZones(t *testing.T) {
	s := newEnv(t)
	s.addContacts(2, 1)
	s.exec("UPDATE contacts SET hours_group = 'S1;Asia/Almaty,Asia/Qostanay;Asia/Tokyo', states = '{S1}', zones = '{Asia/Almaty,Asia/Qostanay}' WHERE id = 'con_2'")
	rules := market.Files("kz")
	rules["package.yaml"] = strings.Replace(rules["package.yaml"], "zones: [Asia/Almaty]", "zones: [Asia/Almaty, Asia/Aqtobe]", 1)
	p, err := market.Read(rules)
	if err != nil {
		t.Fatal(err)
	}
	b := s.queue("node")
	b.Markets = fixedMarket{p}
	d := &dialer.Dialer{Store: b}
	s.wantTake(d, "")
	const wider = ";Asia/Almaty,Asia/Aqtobe; {} {Asia/Almaty,Asia/Aqtobe} pending S1;Asia/Almaty,Asia/Aqtobe,Asia/Qostanay;Asia/Tokyo {S1} {Asia/Almaty,Asia/Aqtobe,Asia/Qostanay} pending"
	s.wantQuery(wider, "SELECT concat_ws(' ', hours_group, states::text, zones::text, state) FROM contacts ORDER BY n")
	b.readAt = time.Time{}
	d.Wake("cmp_1")
	s.wantTake(d, "con_1")
}
