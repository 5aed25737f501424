package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// Addresses name contacts, by number or by id, as they were sent.
type Addresses struct {
	Phones, ContactIDs []json.RawMessage
}

// Reasons why a contact is not withdrawn, beside the states that say it.
const alreadySuppressed = "already_suppressed"

// A Withdrawn is a contact that was addressed.
type Withdrawn struct {
	ContactID  string `json:"contact_id"`
	CampaignID string `json:"campaign_id"`
	Phone      string `json:"phone"`
	Reason     string `json:"reason,omitempty"` // why it is not withdrawn
}

// A Withdrawal is what came of addresses. Invalid and NotFound are as they were
// sent.
type Withdrawal struct {
	Withdrawn       []Withdrawn       `json:"withdrawn"`
	Already         []Withdrawn       `json:"already_withdrawn"`
	NotWithdrawable []Withdrawn       `json:"not_withdrawable"`
	Invalid         []json.RawMessage `json:"invalid"`
	NotFound        []json.RawMessage `json:"not_found"`
}

// Check refuses no addresses at all, and too many.
func (a Addresses) check(most int) error {
	switch n := len(a.Phones) + len(a.ContactIDs); {
	case n == 0:
		return control.Refuse(control.CodeAddressesRequired, "phones and contact_ids are empty: send at least one address")
	case n > most:
		return control.Refuse(control.CodeAddressesTooMany, fmt.Sprintf("phones and contact_ids are at most %d together, not %d", most, n))
	default:
		return nil
	}
}

// an address is one of them and what it is looked up by, empty where it is none.
type address struct {
	sent  json.RawMessage
	key   string
	valid bool
}

// phone reads a number: the last ten digits of text or of a whole number. Fewer
// digits than ten match nobody.
func phone(sent json.RawMessage) address {
	a := address{sent: sent}
	text := string(sent)
	if strings.HasPrefix(text, `"`) && json.Unmarshal(sent, &text) != nil {
		return a
	}
	if sent[0] != '"' && strings.Trim(text, "0123456789") != "" {
		return a // neither text nor a whole number
	}
	digits := control.Digits(text)
	a.valid = digits != ""
	if len(digits) >= lastDigits {
		a.key = digits[len(digits)-lastDigits:]
	}
	return a
}

// lastDigits is by how many digits numbers are found.
const lastDigits = 10

func contactID() *regexp.Regexp { return regexp.MustCompile(`^con_[0-9A-Z]{26}$`) }

// named reads the id of a contact. Text that is no id matches nobody.
func named(sent json.RawMessage, form *regexp.Regexp) address {
	a := address{sent: sent}
	var text string
	if sent[0] != '"' || json.Unmarshal(sent, &text) != nil || strings.TrimSpace(text) == "" {
		return a
	}
	a.valid = true
	if text = strings.TrimSpace(text); form.MatchString(text) {
		a.key = text
	}
	return a
}

// Withdraw keeps contacts of all live campaigns of an organization from being
// called, as far as they were not.
func (d *Desk) Withdraw(ctx context.Context, orgID string, who Who, a Addresses) (Withdrawal, error) {
	if err := a.check(cmp.Or(d.MostAddresses, usualAddresses)); err != nil {
		return Withdrawal{}, err
	}
	w := Withdrawal{Withdrawn: []Withdrawn{}, Already: []Withdrawn{}, NotWithdrawable: []Withdrawn{}, Invalid: []json.RawMessage{}, NotFound: []json.RawMessage{}}
	var all []address
	lastTen, ids, form := []string{}, []string{}, contactID()
	for _, sent := range a.Phones {
		x := phone(sent)
		all, lastTen = append(all, x), append(lastTen, x.key)
	}
	for _, sent := range a.ContactIDs {
		x := named(sent, form)
		all, ids = append(all, x), append(ids, x.key)
	}
	found := map[string]bool{}
	err := db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		contacts, err := d.Store.Addressed(ctx, tx, orgID, lastTen, ids)
		if err != nil {
			return err
		}
		for _, k := range contacts {
			found[k.LastTen], found[k.ID] = true, true
			w.put(k)
		}
		return d.withdrawn(ctx, tx, orgID, who, w.Withdrawn)
	})
	if err != nil {
		return Withdrawal{}, err
	}
	for _, x := range all {
		switch {
		case !x.valid:
			w.Invalid = append(w.Invalid, x.sent)
		case x.key == "" || !found[x.key]:
			w.NotFound = append(w.NotFound, x.sent)
		}
	}
	return w, nil
}

// put lists a contact by what it is.
func (w *Withdrawal) put(k store.Addressed) {
	x := Withdrawn{ContactID: k.ID, CampaignID: k.CampaignID, Phone: k.Number}
	switch {
	case k.State == campaigns.Pending || k.State == campaigns.Awaiting:
		w.Withdrawn = append(w.Withdrawn, x)
	case k.Reason == campaigns.WithdrawnByClient:
		w.Already = append(w.Already, x)
	default:
		if x.Reason = string(k.State); k.State == campaigns.Suppressed {
			x.Reason = alreadySuppressed
		}
		w.NotWithdrawable = append(w.NotWithdrawable, x)
	}
}

// withdrawn writes a withdrawal, and in the log of each campaign how many it cost.
func (d *Desk) withdrawn(ctx context.Context, tx pgx.Tx, orgID string, who Who, all []Withdrawn) error {
	if len(all) == 0 {
		return nil
	}
	now := d.now().UTC()
	var ids []string
	by := map[string]int{}
	for _, x := range all {
		ids = append(ids, x.ContactID)
		by[x.CampaignID]++
	}
	if err := d.Store.Withdraw(ctx, tx, ids, now); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(by)) {
		c, err := d.Store.Get(ctx, tx, orgID, id, false)
		if err == nil {
			err = d.Store.Log(ctx, tx, c, who.entry(store.Withdrawn, strconv.Itoa(by[id]), now))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
