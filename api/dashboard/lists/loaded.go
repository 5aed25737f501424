package lists

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/campaigns/lists"
	"github.com/parley-voice/parley/campaigns/registry"
	"github.com/parley-voice/parley/control/operator"
)

// loaded loads the file of a form as the command does, and logs it.
func (l Lists) loaded(r *frame.Request, load lists.Load, do func(context.Context, lists.Load) (lists.Loaded, error)) (lists.Loaded, error) {
	name, remove, err := r.File("file")
	if err != nil {
		return lists.Loaded{}, err
	}
	defer remove()
	load.Files, load.Replace, load.By, load.Now = []string{name}, r.Ticked("replace"), r.Session.Email, time.Now().UTC()
	done, err := do(r.Context(), load)
	if errors.Is(err, registry.ErrList) {
		return done, frame.Invalid("file", strings.ReplaceAll(err.Error(), filepath.Dir(name)+"/", ""))
	}
	if err != nil {
		return done, err
	}
	e := operator.Entry{Action: "suppression.load", Object: done.Name, After: map[string]any{"added": done.Added, "deleted": done.Deleted, "numbers": done.Numbers, "replaced": load.Replace}}
	return done, r.Log(e)
}
