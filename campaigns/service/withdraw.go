package service

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
	"github.com/parley-voice/parley/control/phonenumber"
)

// A WithdrawRequest names contacts by number or by id, as sent.
type WithdrawRequest struct {
	Phones, ContactIDs []json.RawMessage
}

// alreadySuppressed is the reason why a suppressed contact cannot be withdrawn. For other contacts the reason is the
// state.
const alreadySuppressed = "already_suppressed"

// A Withdrawn is one contact in the result of a withdrawal.
type Withdrawn struct {
	ContactID  string `json:"contact_id"`
	CampaignID string `json:"campaign_id"`
	Phone      string `json:"phone"`
	Reason     string `json:"reason,omitempty"` // why the contact cannot be withdrawn
}

// A Withdrawal is the result of a request. Invalid and NotFound hold the values as sent.
type Withdrawal struct {
	Withdrawn       []Withdrawn       `json:"withdrawn"`
	Already         []Withdrawn       `json:"already_withdrawn"`
	NotWithdrawable []Withdrawn       `json:"not_withdrawable"`
	Invalid         []json.RawMessage `json:"invalid"`
	NotFound        []json.RawMessage `json:"not_found"`
}

// check refuses a request without addresses, or with more addresses than most.
func (a WithdrawRequest) check(most int) error {
	switch n := len(a.Phones) + len(a.ContactIDs); {
	case n == 0:
		return control.Refuse(control.CodeAddressesRequired, "phones and contact_ids are empty: send at least one address")
	case n > most:
		return control.Refuse(control.CodeAddressesTooMany,
			fmt.Sprintf("phones and contact_ids accept at most %d values together, not %d", most, n))
	default:
		return nil
	}
}

// An address is one value of a request, and its lookup key. The key is empty if the value
// matches nothing.
type address struct {
	sent  json.RawMessage
	key   string
	valid bool
}

// parsePhone reads a number: the last ten digits of a string or an integer. A number with
// fewer digits matches no contact.
func parsePhone(sent json.RawMessage) address {
	a := address{sent: sent}
	text := string(sent)
	if strings.HasPrefix(text, `"`) && json.Unmarshal(sent, &text) != nil {
		return a
	}
	if sent[0] != '"' && strings.Trim(text, "0123456789") != "" {
		return a // the value is neither a string nor an integer
	}
	digits := phonenumber.SuppressionDigits(text)
	a.valid = digits != ""
	if len(digits) >= lastDigits {
		a.key = digits[len(digits)-lastDigits:]
	}
	return a
}

// lastDigits is the number of digits that identify a contact.
const lastDigits = 10

func contactIDPattern() *regexp.Regexp { return regexp.MustCompile(`^con_[0-9A-Z]{26}$`) }

// parseContactID reads the id of a contact. Other text matches no contact.
func parseContactID(sent json.RawMessage, form *regexp.Regexp) address {
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

// Withdraw suppresses contacts in all live campaigns of an organization, unless they
// were called already.
func (svc *Service) Withdraw(ctx context.Context, orgID string, who Actor, a WithdrawRequest) (Withdrawal, error) {
	if err := a.check(cmp.Or(svc.MaxAddresses, defaultMaxAddresses)); err != nil {
		return Withdrawal{}, err
	}
	w := Withdrawal{
		Withdrawn: []Withdrawn{}, Already: []Withdrawn{}, NotWithdrawable: []Withdrawn{},
		Invalid: []json.RawMessage{}, NotFound: []json.RawMessage{},
	}
	var all []address
	lastTen, ids, form := []string{}, []string{}, contactIDPattern()
	for _, sent := range a.Phones {
		x := parsePhone(sent)
		all, lastTen = append(all, x), append(lastTen, x.key)
	}
	for _, sent := range a.ContactIDs {
		x := parseContactID(sent, form)
		all, ids = append(all, x), append(ids, x.key)
	}
	found := map[string]bool{}
	err := db.Tx(ctx, svc.Pool, func(tx pgx.Tx) error {
		contacts, err := svc.Store.Contacts.Find(ctx, tx, orgID, lastTen, ids)
		if err != nil {
			return err
		}
		for _, k := range contacts {
			found[k.LastTen], found[k.ID] = true, true
			w.add(k)
		}
		return svc.saveWithdrawal(ctx, tx, orgID, who, w.Withdrawn)
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

// add adds a contact to the list of its state.
func (w *Withdrawal) add(k store.AddressedContact) {
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

// saveWithdrawal suppresses the contacts, and logs how many they are in each campaign.
func (svc *Service) saveWithdrawal(ctx context.Context, tx pgx.Tx, orgID string, who Actor, all []Withdrawn) error {
	if len(all) == 0 {
		return nil
	}
	now := svc.now().UTC()
	var ids []string
	by := map[string]int{}
	for _, x := range all {
		ids = append(ids, x.ContactID)
		by[x.CampaignID]++
	}
	if err := svc.Store.Contacts.Withdraw(ctx, tx, ids, now); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(by)) {
		c, err := svc.Store.Get(ctx, tx, orgID, id, false)
		if err == nil {
			err = svc.Store.AddLog(ctx, tx, c, who.entry(store.Withdrawn, strconv.Itoa(by[id]), now))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
