package schema

import (
	"encoding/json"

	"github.com/parley-voice/parley/campaigns/service"
)

// A Calls is the body of POST /v1/campaigns/{id}/calls. The schema accepts any attestation,
// because the contract checks it later, in its order.
type Calls struct {
	_           struct{}         `additionalProperties:"true" json:"-"`
	Calls       []map[string]any `doc:"Rows as in planned_calls, at most 1000" json:"calls,omitempty" nullable:"true"`
	Attestation any              `doc:"The object {\"confirmed\": true}, without other keys" json:"attestation,omitempty"`
}

// Withdrawal is the body of POST /v1/contacts/withdraw. The schema accepts any address, because
// invalid ones are reported without failing the request.
type Withdrawal struct {
	_          struct{}          `additionalProperties:"true" json:"-"`
	Phones     []json.RawMessage `doc:"Numbers as text or integers, matched by their last ten digits" json:"phones,omitempty" nullable:"true"`
	Numbers    []json.RawMessage `doc:"The same as phones" json:"numbers,omitempty" nullable:"true"`
	ContactIDs []json.RawMessage `doc:"Ids, as in metadata.contact_id of webhooks" json:"contact_ids,omitempty" nullable:"true"`
}

// Batch parses the body of POST /v1/campaigns/{id}/calls: rows and attestation.
func (s *Set) Batch(b *Body) (rows []json.RawMessage, attested bool, err error) {
	var c Calls
	if err = s.Check(b, "Calls", &c); err != nil {
		return nil, false, err
	}
	a, _ := c.Attestation.(map[string]any)
	return s.rows(b, "calls"), len(a) == 1 && a["confirmed"] == true, nil
}

// Addresses parses the body of POST /v1/contacts/withdraw.
func (s *Set) Addresses(b *Body) (service.WithdrawRequest, error) {
	var w Withdrawal
	if err := s.Check(b, "Withdrawal", &w); err != nil {
		return service.WithdrawRequest{}, err
	}
	list := func(name string) []json.RawMessage { return b.elements(name, maxAddresses+1) }
	return service.WithdrawRequest{Phones: append(list("phones"), list("numbers")...), ContactIDs: list("contact_ids")}, nil
}
