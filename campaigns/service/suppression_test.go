package service_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dnc"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/store"
)

// drawSpelling draws a spelling of a ten-digit number of a country. Further digits without a mark follow the number
// only if more is true.
func drawSpelling(t *rapid.T, label, country, national string, more bool) string {
	prefixes := []string{"+" + country, country, "", "00" + country, "011" + country, "810" + country, "9011" + country, "tel:+" + country, "++" + country}
	if country == "7" {
		prefixes = append(prefixes, "8")
	}
	prefix := rapid.SampledFrom(prefixes).Draw(t, label+" prefix")
	var s strings.Builder
	s.WriteString(prefix)
	for i, d := range national {
		if i > 0 || strings.HasSuffix(prefix, country) {
			s.WriteString(rapid.SampledFrom([]string{"", "", "", "", " ", "-", ".", " (", ") ", "\u00a0", "\u2011", "/"}).Draw(t, label+" separator"))
		}
		s.WriteRune(d)
	}
	tails := []string{"", "", " ", ".0"}
	for _, mark := range []string{"x", " x ", " ext ", " ext. ", "Ext", " extension ", "#", " #", ";ext=", ",", ",,", " доб. ", " доп.", " внутр. ", "*", "p", "w", "×", " х", "~"} {
		tails = append(tails, mark+"5", mark+"1234")
	}
	if more && prefix != "" {
		tails = append(tails, "1", " 1", "-55", " (5)")
	}
	s.WriteString(rapid.SampledFrom(tails).Draw(t, label+" tail"))
	return s.String()
}

// listWriters returns the ways to put a number on an organization's list.
func (o *env) listWriters(t *testing.T, name string) map[string]func(number string) error {
	t.Helper()
	catalog := &dnc.Catalog{Pool: o.db.Pool, Bucket: &recording.Folder{Dir: t.TempDir()}}
	return map[string]func(string) error{
		"page": func(n string) error {
			_, _, err := dnc.AddNumber(o.ctx, o.db.Pool, o.org, n)
			return err
		},
		"file": func(n string) error {
			path := filepath.Join(t.TempDir(), "list.csv")
			if err := os.WriteFile(path, []byte(strings.NewReplacer(",", " p ", "/", "-", ";", " ").Replace(n)+"\n"), 0o600); err != nil {
				return err
			}
			_, err := catalog.LoadOwn(o.ctx, dnc.Load{OrgID: o.org, Files: []string{path}, Now: time.Now().Add(time.Minute)})
			return err
		},
		"apply": func(n string) error {
			text, err := json.Marshal(map[string]any{"organizations": []any{map[string]any{"name": name, "suppression": []string{n}}}})
			if err != nil {
				return err
			}
			spec, err := apply.Parse(strings.NewReader(string(text)))
			if err == nil {
				err = apply.Apply(o.ctx, o.db.Pool, spec, apply.Options{})
			}
			return err
		},
	}
}

// answerCall returns an answered call to another number, which may be transferred.
func (o *env) answerCall(d *admission.Controller, other string) (control.Lease, error) {
	if _, err := d.Place(o.ctx, o.org, admission.Order{Agent: "sales", To: other}, nil); err != nil {
		return control.Lease{}, err
	}
	s := &store.Store{Pool: o.db.Pool}
	all, err := s.Claim(o.ctx, control.NodeID{Owner: "n", Home: "h"}, time.Minute, 1)
	if err != nil || len(all) != 1 {
		return control.Lease{}, fmt.Errorf("claimed %d calls: %w", len(all), err)
	}
	err = s.Intent(o.ctx, all[0].Lease)
	for _, state := range []control.AttemptState{control.Sent, control.Rang, control.Answered} {
		err = errors.Join(err, s.Mark(o.ctx, all[0].Lease, state, time.Now()))
	}
	if err == nil {
		_, err = o.db.Pool.Exec(o.ctx, "UPDATE subgroups SET next_dial_at = now()")
	}
	return all[0].Lease, err
}

// TestSuppressedNumberInAnySpelling checks that no entry point accepts a listed number for dialing, however it was
// put on the list and however it is spelled.
func TestSuppressedNumberInAnySpelling(t *testing.T) {
	o := newEnv(t)
	o.Now = time.Now
	rapid.Check(t, func(t2 *rapid.T) {
		if err := o.addOrganization(); err != nil {
			t2.Fatal(err)
		}
		country := rapid.SampledFrom([]string{"1", "7"}).Draw(t2, "country")
		national := map[string][]string{"1": {"2125550101", "7012345678", "9162345678"}, "7": {"7012345678", "7771234567"}}
		number := rapid.SampledFrom(national[country]).Draw(t2, "number")
		market, other := "us", "+13105550199"
		if country == "7" {
			market, other = "kz", "+77010009999"
		}
		_, err := o.db.Pool.Exec(o.ctx, `UPDATE organizations SET settings = jsonb_build_object('market', $2::text) WHERE id = $1`, o.org, market)
		if err == nil {
			_, err = o.db.Pool.Exec(o.ctx, `UPDATE subgroups SET allowed_destinations = '{0,1,2,3,4,5,6,7,8,9}' WHERE org_id = $1`, o.org)
		}
		if err != nil {
			t2.Fatal(err)
		}
		d := &admission.Controller{Pool: o.db.Pool, Store: &store.Store{Pool: o.db.Pool}}
		lease, err := o.answerCall(d, other)
		if err != nil {
			t2.Fatal(err)
		}

		by := rapid.SampledFrom([]string{"page", "file", "apply", "call"}).Draw(t2, "source")
		written := drawSpelling(t2, "listed", country, number, false)
		if by == "call" { // the number of a call, as it was dialed
			d := &outcome.OptOutRecorder{Pool: o.db.Pool, Store: o.Store}
			err = d.OptOut(o.ctx, control.OptOut{OrgID: o.org, Number: country + number, Source: "key", At: time.Now()})
		} else {
			err = o.listWriters(t, o.name(t))[by](written)
		}
		if err != nil {
			t2.Fatalf("%q by %s: %v", written, by, err)
		}

		dialed := drawSpelling(t2, "dialed", country, number, true)
		if c, fault := d.Place(o.ctx, o.org, admission.Order{Agent: "sales", To: dialed}, nil); fault == nil {
			t2.Errorf("listed as %q by %s, a single call to %q is dialed as %s", written, by, dialed, c.DialNumber)
		}
		if leg, fault := d.OpenLeg(o.ctx, lease, dialed, time.Minute); fault == nil {
			t2.Errorf("listed as %q by %s, a transfer to %q is dialed as %s", written, by, dialed, leg.Dial)
		}
		if got := o.callableNumbers(t2, dialed, other); got != other {
			t2.Errorf("listed as %q by %s, a campaign with %q calls %s", written, by, dialed, got)
		}
		sent, err := json.Marshal(drawSpelling(t2, "withdrawn", country, other[2:], false))
		if err != nil {
			t2.Fatal(err)
		}
		w, err := o.Withdraw(o.ctx, o.org, testActor(), service.WithdrawRequest{Phones: []json.RawMessage{sent}})
		if err != nil || len(w.Withdrawn) != 1 {
			t2.Errorf("%s is written as %s in a withdrawal: %+v, %v", other, sent, w, err)
		}
	})
}

// callableNumbers launches a campaign with two numbers, as rows or as a file, adds the first
// one again, and returns the numbers that would be called.
func (o *env) callableNumbers(t *rapid.T, number, other string) string {
	spec := campaigns.Spec{Name: "Spring", Agent: "sales", CallsPerMinute: 20}
	order := service.CreateRequest{Spec: spec, Rows: rowsOf(number, other)}
	if rapid.Bool().Draw(t, "by file") {
		text := strings.NewReader(fmt.Sprintf("phone;name\n%q;a\n%q;b\n", number, other))
		order.Rows, order.File = nil, &service.File{ReaderAt: text, Size: text.Size()}
	}
	st, err := o.Create(o.ctx, o.org, testActor(), order, nil, nil)
	if err == nil {
		st, err = o.Launch(o.ctx, o.org, st.Campaign.ID, testActor(), service.LaunchRequest{Confirmed: true, ImportID: st.Import.ID, DNC: campaigns.Skip})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err = o.Add(o.ctx, o.org, st.Campaign.ID, testActor(), rowsOf(number), service.BatchHooks{}); err == nil {
		t.Logf("%q is added", number)
	} else if _, refused := errors.AsType[*service.RefusedError](err); !refused && ignoreRefusal(err) != nil {
		t.Fatal(err)
	}
	all := o.mustColumn(t, "SELECT number FROM contacts WHERE campaign_id = $1 AND state = 'pending' ORDER BY number", st.Campaign.ID)
	return strings.Join(all, " ")
}
