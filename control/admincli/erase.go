package admincli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/retention"
	"github.com/parley-voice/parley/control/store"
)

// Erase erases the content of calls.
type Erase struct {
	Org    string `required:"" help:"Name of the organization."`
	Call   string `help:"Erase this call."                                      xor:"which" required:""`
	Number string `help:"Erase every call to this number, in any format." xor:"which" required:""`
	All    bool   `help:"Erase every call of the organization."                 xor:"which" required:""`
}

// Run erases ended calls. The suppression list keeps its numbers.
func (c Erase) Run(ctx context.Context, d *Env) error {
	// Without this check, a wrong PARLEY_DATA_DIR would leave the recordings and report success.
	if f, ok := d.Bucket.(*recording.Folder); ok {
		if _, err := os.Stat(filepath.Dir(f.Dir)); err != nil {
			return fmt.Errorf("folder of the recordings: %w; set PARLEY_DATA_DIR to the server's data directory", err)
		}
	}
	org, err := apikeys.FindOrganization(ctx, d.Pool, c.Org)
	if err != nil {
		return err
	}
	keeper := &retention.Purger{Pool: d.Pool, Bucket: d.Bucket, Segments: func(ctx context.Context) error {
		return recording.SweepSegments(ctx, d.Bucket, store.RecordingStore{Store: &store.Store{Pool: d.Pool}})
	}}
	n, left, err := keeper.Erase(ctx, org, retention.Selection{Call: c.Call, Number: c.Number, All: c.All})
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(d.Out, "%d erased\n", n); err == nil && left > 0 {
		err = fmt.Errorf("%d calls are still active or being processed; erase them later", left)
	}
	return err
}
