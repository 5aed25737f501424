package dnc

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns/dnc"
	"github.com/parley-voice/parley/campaigns/dnc/registry"
	"github.com/parley-voice/parley/control/operator"
)

// loadList loads the file of a form like parley dnc load, and logs it.
func (l Lists) loadList(r *ui.Request, load dnc.Load, do func(context.Context, dnc.Load) (dnc.LoadResult, error)) (dnc.LoadResult, error) {
	name, remove, err := r.File("file")
	if err != nil {
		return dnc.LoadResult{}, err
	}
	defer remove()
	load.Files, load.Replace, load.By, load.Now = []string{name}, r.Ticked("replace"), r.Session.Email, time.Now().UTC()
	done, err := do(r.Context(), load)
	if errors.Is(err, registry.ErrList) {
		return done, ui.Invalid("file", strings.ReplaceAll(err.Error(), filepath.Dir(name)+"/", ""))
	}
	if err != nil {
		return done, err
	}
	e := operator.Entry{
		Action: "suppression.load",
		Object: done.Name,
		After:  map[string]any{"added": done.Added, "deleted": done.Deleted, "numbers": done.Numbers, "replaced": load.Replace},
	}
	return done, r.Log(e)
}
