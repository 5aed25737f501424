package admincli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/operator"
)

// Audit prints the audit log.
type Audit struct {
	Org   string `required:"" help:"Name of the organization."`
	After int64  `help:"Only entries after this id, for example the last one of an earlier export." placeholder:"ID"`
}

// auditLine is an entry as a line of JSON.
type auditLine struct {
	ID      int64           `json:"id"`
	At      time.Time       `json:"at"`
	Who     string          `json:"who"`
	Address string          `json:"address,omitempty"` // IP address; empty for commands
	Action  string          `json:"action"`
	Object  string          `json:"object"`
	Before  json.RawMessage `json:"before,omitempty"`
	After   json.RawMessage `json:"after,omitempty"`
}

// auditPage is the number of entries that are read together. An entry may hold a whole agent.
const auditPage = 100

// Run prints the entries as lines of JSON, oldest first. It omits the newest entries while a running transaction may
// still add an entry before them. An export with After therefore continues an earlier one without gaps.
func (c Audit) Run(ctx context.Context, d *Env) error {
	org, err := apikeys.FindOrganization(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	settled, err := operator.SettledBefore(ctx, d.Pool, 10*time.Second)
	if err != nil {
		return err
	}
	out := json.NewEncoder(d.Out)
	for after := c.After; ; {
		all, err := operator.EntriesAfter(ctx, d.Pool, org, after, settled, auditPage)
		if err != nil {
			return err
		}
		for _, e := range all {
			after = e.ID
			if err = out.Encode(auditLine{e.ID, e.At.UTC(), e.Who, e.Address, e.Action, e.Object, e.Before, e.After}); err != nil {
				return err
			}
		}
		if len(all) < auditPage {
			return nil
		}
	}
}
