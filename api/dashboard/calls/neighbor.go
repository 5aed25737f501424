package calls

import (
	"net/http"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/overview"
	"github.com/parley-voice/parley/control/store"
)

// neighborTimeout limits the search for the next call.
const neighborTimeout = 10 * time.Second

// neighbor redirects to the next call of the list that the filters select, or to the previous one. At the end of the
// list it returns to the call.
func (c *Calls) neighbor(r *ui.Request, previous bool) error {
	call, err := c.Store.Call(r.Context(), r.Org(), r.ID())
	if err != nil {
		return err
	}
	chosen, err := readSearch(r)
	if err != nil {
		return err
	}
	chosen.query.Del("cursor")
	after := call.CreatedAt
	if chosen.narrow.Slowest {
		times, fault := overview.ResponseTimes(r.Context(), r.DB(), []string{call.ID})
		if fault != nil {
			return fault
		}
		after = store.SlowestPosition(times[call.ID].Slowest)
	}
	found, _, err := c.API.Find(r.Context(), r.Org(), chosen.query, func(f *store.Filter) {
		chosen.apply(f)
		f.Ascending = f.Ascending != previous
		f.AfterTime, f.AfterID, f.Limit = after, call.ID, 1
	})
	if err != nil {
		return err
	}
	id := call.ID
	switch {
	case len(found.Calls) > 0:
		id = found.Calls[0].ID
	case previous:
		err = r.Notify(r.Texts.T("calls.neighbor.first"))
	default:
		err = r.Notify(r.Texts.T("calls.neighbor.last"))
	}
	if err == nil {
		to := r.URL("calls/" + id + chosen.suffix())
		if chosen.narrow.Slowest {
			to += "#" + slowestFirst
		}
		http.Redirect(r.Writer, r.HTTP, to, http.StatusSeeOther)
	}
	return err
}
