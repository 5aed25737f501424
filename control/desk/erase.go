package desk

import (
	"context"
	"fmt"

	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/retention"
)

// Erase erases calls.
type Erase struct {
	Org    string `required:"" help:"Name of the organization."`
	Call   string `help:"This call."                                      xor:"which" required:""`
	Number string `help:"Every call to this number, however it is written." xor:"which" required:""`
	All    bool   `help:"Every call of the organization."                 xor:"which" required:""`
}

// Run erases the calls that are over. Numbers that are not to be called stay on
// their list.
func (c Erase) Run(ctx context.Context, d *Desk) error {
	org, err := access.FindOrganization(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	keeper := &retention.Keeper{Pool: d.Pool, Bucket: d.Bucket}
	n, left, err := keeper.Erase(ctx, org, retention.Which{Call: c.Call, Number: c.Number, All: c.All})
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(d.Out, "%d erased\n", n); err == nil && left > 0 {
		err = fmt.Errorf("%d calls are not over, or what follows their end is not done: erase them later", left)
	}
	return err
}
