package schema

import (
	"encoding/json"

	"github.com/parley-voice/parley/campaigns/desk"
)

// A Calls is the body of POST /v1/campaigns/{id}/calls. The attestation is open:
// it is refused in the contract's order.
type Calls struct {
	_           struct{}         `additionalProperties:"true" json:"-"`
	Calls       []map[string]any `doc:"Rows as in planned_calls, at most 1000" json:"calls,omitempty" nullable:"true"`
	Attestation any              `doc:"An object with one key: confirmed, which is true" json:"attestation,omitempty"`
}

// Withdrawal is the body of POST /v1/contacts/withdraw. What an address may be is
// open: one that cannot be read is told, and costs nothing.
type Withdrawal struct {
	_          struct{}          `additionalProperties:"true" json:"-"`
	Phones     []json.RawMessage `doc:"Numbers, as text or as integers: their last ten digits count" json:"phones,omitempty" nullable:"true"`
	Numbers    []json.RawMessage `doc:"The same as phones" json:"numbers,omitempty" nullable:"true"`
	ContactIDs []json.RawMessage `doc:"Ids, as in metadata.contact_id of webhooks" json:"contact_ids,omitempty" nullable:"true"`
}

// Batch reads the body of POST /v1/campaigns/{id}/calls: its rows, and whether
// the consent is attested.
func (s *Set) Batch(b *Body) (rows []json.RawMessage, attested bool, err error) {
	var c Calls
	if err = s.Check(b, "Calls", &c); err != nil {
		return nil, false, err
	}
	for _, row := range c.Calls {
		text, err := json.Marshal(row) // numbers keep their digits, keys get an order
		if err != nil {
			return nil, false, err
		}
		rows = append(rows, text)
	}
	a, _ := c.Attestation.(map[string]any)
	return rows, len(a) == 1 && a["confirmed"] == true, nil
}

// Addresses reads the body of POST /v1/contacts/withdraw.
func (s *Set) Addresses(b *Body) (desk.Addresses, error) {
	var w Withdrawal
	if err := s.Check(b, "Withdrawal", &w); err != nil {
		return desk.Addresses{}, err
	}
	return desk.Addresses{Phones: append(w.Phones, w.Numbers...), ContactIDs: w.ContactIDs}, nil
}
