package campaigns

import (
	"errors"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/overview"
	"github.com/parley-voice/parley/control/store"
)

// maxNamed limits the campaigns that a message names.
const maxNamed = 10

// listedIDs is the field with the campaigns that the confirmation named.
const listedIDs = "listed"

// hangUp is the field that also ends the active calls.
const hangUp = "hang_up"

type pauseAllPage struct {
	Running, Scheduled []campaigns.Campaign
	Listed             string // ids
	Active             int    // calls that are queued, ringing or in conversation
}

func (c *Campaigns) askPauseAll(r *ui.Request) (ui.Page, error) {
	var p pauseAllPage
	var err error
	if p.Running, err = service.WithStatus(r.Context(), c.API.Store, r.Org(), campaigns.Running); err != nil {
		return ui.Page{}, err
	}
	p.Scheduled, err = service.WithStatus(r.Context(), c.API.Store, r.Org(), campaigns.Scheduled)
	var ids []string
	for _, k := range p.Running {
		ids = append(ids, k.ID)
	}
	p.Listed = strings.Join(ids, ",")
	if err == nil {
		p.Active, err = overview.CountActive(r.Context(), r.DB(), r.Org())
	}
	return ui.Page{
		Template: "pauseall.html", Title: r.Texts.T("campaigns.pause_all.title"),
		Crumbs: crumbs(r.Texts), Data: p,
	}, err
}

// pauseAll pauses all running campaigns. Those that the confirmation did not name, because they were launched since, are
// named in the result. If the form asks for it, it then ends the active calls.
func (c *Campaigns) pauseAll(r *ui.Request) (ui.Result, error) {
	done, err := service.PauseAll(r.Context(), c.service(), r.Org(), who(r))
	for _, k := range done.Paused {
		err = errors.Join(err, c.log(
			r, "pause", k.ID, map[string]any{"status": campaigns.Running}, map[string]any{"status": campaigns.Paused, "name": k.Name, "all": true},
		))
	}
	to, active, failedCalls := "campaigns?status=paused", r.Texts.T("campaigns.pause_all.continue"), false
	if r.Ticked(hangUp) { // also if a campaign could not be paused
		var fault error
		to = "live"
		active, failedCalls, fault = hangUpAll(r, c.Calls)
		err = errors.Join(err, fault)
	}
	if err != nil {
		return ui.Result{}, err
	}
	scheduled, err := service.WithStatus(r.Context(), c.API.Store, r.Org(), campaigns.Scheduled)
	notice, failed := pausedText(r.Texts, done, scheduled, strings.Split(r.Text(listedIDs), ","), active)
	return ui.Result{To: to, Notice: notice, Failed: failed || failedCalls}, err
}

// hangUpAll ends the active calls of the organization, and says how many. failed reports whether active calls may be left.
func hangUpAll(r *ui.Request, calls *store.Store) (text string, failed bool, err error) {
	n, fault := store.EndAll(r.Context(), calls, r.Org())
	logged := map[string]any{"calls": n}
	text = r.Texts.T("campaigns.pause_all.hanging_up", "count", n)
	if n == 0 && fault == nil {
		text = r.Texts.T("campaigns.pause_all.no_call")
	}
	if fault != nil {
		logged["failed"] = true
		text += " " + r.Texts.T("campaigns.pause_all.calls_left")
	}
	return text, fault != nil, r.Log(operator.Entry{Action: "call.end_all", Object: r.Org(), After: logged})
}

// pausedText says what was done. Listed are the ids of the campaigns that the confirmation named, and active says what happens
// to active calls.
func pausedText(
	texts *ui.Texts, done service.PauseAllResult, scheduled []campaigns.Campaign, listed []string, active string,
) (text string, failed bool) {
	named := map[string]bool{}
	for _, id := range listed {
		named[id] = true
	}
	var since []campaigns.Campaign
	for _, k := range done.Paused {
		if !named[k.ID] {
			since = append(since, k)
		}
	}
	var all []string
	add := func(key string, which []campaigns.Campaign) {
		if len(which) > 0 {
			all = append(all, texts.T(key, "names", nameList(texts, which)))
		}
	}
	if len(done.Paused) > 0 {
		all = append(all, texts.T("campaigns.pause_all.notice", "campaigns", texts.T("ui.count.campaigns", "count", len(done.Paused))))
	}
	all = append(all, active)
	add("campaigns.pause_all.also", since)
	for i, f := range done.Failed {
		if i == maxNamed {
			all = append(all, texts.T("campaigns.pause_all.not_paused_more", "campaigns",
				texts.T("ui.count.more_campaigns", "count", len(done.Failed)-i)))
			break
		}
		all = append(all, texts.T("campaigns.pause_all.not_paused", "name", f.Campaign.Name, "reason", failure(texts, f.Err)))
	}
	add("campaigns.pause_all.still_running", done.Left)
	add("campaigns.pause_all.still_scheduled", scheduled)
	return strings.Join(all, " "), len(done.Failed)+len(done.Left) > 0
}

// failure hides errors of the database.
func failure(texts *ui.Texts, err error) string {
	if e, ok := errors.AsType[*control.Error](err); ok {
		return e.Message
	}
	return texts.T("campaigns.pause_all.internal_error")
}

func nameList(texts *ui.Texts, all []campaigns.Campaign) string {
	var names []string
	for _, k := range all[:min(len(all), maxNamed)] {
		names = append(names, k.Name)
	}
	if more := len(all) - len(names); more > 0 {
		names = append(names, texts.T("campaigns.pause_all.more", "count", more))
	}
	return strings.Join(names, ", ")
}
