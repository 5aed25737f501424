package campaigns

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
)

// contactsPerPage is the number of contacts on a page.
const contactsPerPage = 50

type contactRow struct {
	store.ListedContact

	Label  string    // of the state
	Class  string    // CSS class of the state
	Reason string    // reason for the state; may be empty
	When   time.Time // next call; zero if there is none or it is not known
	Result string    // of the last call
}

type contactsPage struct {
	Campaign campaigns.Campaign
	Show     ui.Field
	Number   string
	Rows     []contactRow
	Next     string
	Filtered bool
	Refused  string
}

// contacts lists the contacts of a campaign, with the reasons for their states.
func (c *Campaigns) contacts(r *ui.Request) (ui.Page, error) {
	f, err := c.service().ProgressFacts(r.Context(), r.Org(), r.ID(), false)
	if err != nil {
		return ui.Page{}, err
	}
	k := f.Campaign
	x := contactsPage{Campaign: k, Show: showField(r.Texts, f.Counts, r.Query("show")), Number: r.Query("number")}
	filter, ok := contactFilter(r.Texts, r.Query("show"))
	if filter.Readiness != nil {
		if err = c.readHours(r, f, filter.Readiness); err != nil {
			return ui.Page{}, err
		}
	}
	digits := control.Digits(x.Number)
	if filter.LastTen = digits[max(0, len(digits)-10):]; x.Number != "" && len(digits) < 10 || !ok {
		x.Refused = r.Texts.T("campaigns.contacts.invalid.number")
	}
	x.Filtered = x.Number != "" || r.Query("show") != ""
	after, valid := readPosition(r.Query("cursor"))
	if !valid {
		x.Refused = r.Texts.T("campaigns.contacts.invalid.position")
	}
	if x.Refused == "" {
		all, err := c.API.Store.Contacts.Page(r.Context(), r.DB(), r.Org(), k.ID, filter, after, contactsPerPage+1)
		if err != nil {
			return ui.Page{}, err
		}
		if len(all) > contactsPerPage {
			all = all[:contactsPerPage]
			q := url.Values{"cursor": {writePosition(filter.Position(all[len(all)-1]))}}
			if show := r.Query("show"); show != "" {
				q.Set("show", show)
			}
			x.Next = r.HTTP.URL.Path + "?" + q.Encode()
		}
		for _, one := range all {
			x.Rows = append(x.Rows, describe(r.Texts, f, one))
		}
	}
	p := ui.Page{
		Template: "contacts.html", Title: r.Texts.T("campaigns.contacts.title"), Crumbs: crumbs(r.Texts, campaignLink(k)), Data: x,
	}
	if !x.Filtered {
		p.Lead = r.Texts.T("ui.count.contacts", "count", f.Counts.Total())
	}
	return p, nil
}

// showField offers the states that contacts have, and the reasons why contacts are skipped.
func showField(texts *ui.Texts, n campaigns.Counts, chosen string) ui.Field {
	f := ui.Field{
		Name: "show", Label: texts.T("campaigns.contacts.show.label"), Kind: ui.Select, Value: chosen,
		Options: []ui.Option{{Label: texts.T("campaigns.contacts.show.all")}},
	}
	add := func(value, label string, n int) {
		f.Options = append(f.Options, ui.Option{Value: value, Label: fmt.Sprintf("%s (%s)", label, ui.Count(n))})
	}
	for _, s := range store.ListedStates() {
		if s == campaigns.Pending && n.ByState[s] > 0 {
			f.Options = append(f.Options,
				ui.Option{Value: showReady, Label: texts.T("campaigns.contacts.state.ready")},
				ui.Option{Value: showWaiting, Label: texts.T("campaigns.contacts.state.waiting")})
		}
		if n.ByState[s] > 0 || chosen == string(s) {
			add(string(s), texts.Label("campaigns.state", string(s)), n.ByState[s])
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(n.ByReason)) {
		if n.ByReason[reason] > 0 {
			add(reason, texts.T("campaigns.contacts.show.skipped", "reason", lower(texts.Label("campaigns.skip", reason))), n.ByReason[reason])
		}
	}
	return f
}

// Choices of pending contacts.
const (
	showReady   = "ready"
	showWaiting = "waiting"
)

// readHours sorts the calling hours of pending contacts by whether such contacts may be called.
func (c *Campaigns) readHours(r *ui.Request, f progress.Facts, x *store.Readiness) error {
	keys, err := c.API.Store.Contacts.PendingHours(r.Context(), r.DB(), f.Campaign.ID)
	x.Now = f.Now
	for _, key := range keys {
		if reason, _ := f.HoldReason(progress.Group{Key: key}); reason == "" && f.Campaign.Status == campaigns.Running {
			x.Open = append(x.Open, key)
		} else {
			x.Closed = append(x.Closed, key)
		}
	}
	return err
}

// contactFilter reads a choice of showField.
func contactFilter(texts *ui.Texts, show string) (store.ContactFilter, bool) {
	if show == showReady || show == showWaiting {
		return store.ContactFilter{State: campaigns.Pending, Readiness: &store.Readiness{Ready: show == showReady}}, true
	}
	if state := campaigns.State(show); show == "" || slices.Contains(store.ListedStates(), state) {
		return store.ContactFilter{State: campaigns.State(show)}, true
	}
	return store.ContactFilter{State: campaigns.Suppressed, Reason: show}, texts.Has("campaigns.skip." + show)
}

// describe says why a contact has its state, and when it is called next.
func describe(texts *ui.Texts, f progress.Facts, one store.ListedContact) contactRow {
	x := contactRow{
		ListedContact: one, Label: texts.Label("campaigns.state", string(one.State)), Class: "busy",
		Result: texts.Label("campaigns.outcome", one.Outcome),
	}
	x.Number = ui.FormatNumber(control.Digits(one.Number))
	switch one.State {
	case campaigns.Suppressed:
		x.Class, x.Reason = "bad", texts.Label("campaigns.skip", one.Reason)
	case campaigns.InCall:
		x.Class = "good"
	case campaigns.Awaiting:
		x.Reason = texts.T("campaigns.contacts.reason.awaiting")
	case campaigns.Exhausted:
		x.Class = ""
		switch {
		case one.Fault != "":
			x.Reason = texts.T("campaigns.contacts.reason.fault")
		case one.Attempts == 0:
			x.Reason = texts.T("campaigns.contacts.reason.too_late")
		default:
			x.Reason = texts.T("campaigns.contacts.reason.exhausted")
		}
	case campaigns.Pending:
		if x.Reason, x.When = waiting(texts, f, one); x.Reason == "" {
			x.Label, x.Class = texts.T("campaigns.contacts.state.ready"), "good"
		} else {
			x.Label = texts.T("campaigns.contacts.state.waiting")
		}
	case campaigns.Done:
		x.Class = "good"
	}
	x.Label = lower(x.Label)
	return x
}

// waiting says why a contact is not called now, and when it may be. It says nothing if the contact is ready.
func waiting(texts *ui.Texts, f progress.Facts, one store.ListedContact) (text string, next time.Time) {
	if f.Campaign.Status != campaigns.Running {
		return texts.T("campaigns.wait.campaign_not_running"), time.Time{}
	}
	g := progress.Group{
		Key: one.Group, Wait: one.Next.After(f.Now), Early: one.NotBefore.After(f.Now), N: 1,
		Late: !one.NotAfter.IsZero() && !one.NotAfter.After(f.Now),
	}
	if g.Wait {
		g.Cap, g.Next = one.Cap, one.Next
	}
	if g.Early && one.NotBefore.After(g.Next) {
		g.Next = one.NotBefore
	}
	reason, from := f.HoldReason(g)
	if reason == "" {
		return "", time.Time{}
	}
	if !from.IsZero() {
		if at, ok := f.Calendar.NextOpen(from, g.Key, time.Time{}); ok {
			next = at
		}
	}
	return texts.Label("campaigns.wait", reason), next
}

const positionParts = 5

func writePosition(p store.ContactPosition) string {
	at := ""
	if !p.Next.IsZero() {
		at = strconv.FormatInt(p.Next.UnixMicro(), 10)
	}
	return strings.Join([]string{string(p.State), p.Reason, strconv.Itoa(p.Priority), at, p.ID}, ".")
}

// readPosition reads a position; empty is the beginning.
func readPosition(text string) (p store.ContactPosition, ok bool) {
	if text == "" {
		return p, true
	}
	parts := strings.Split(text, ".")
	if len(parts) != positionParts || !slices.Contains(store.ListedStates(), campaigns.State(parts[0])) {
		return p, false
	}
	p.State, p.Reason, p.ID = campaigns.State(parts[0]), parts[1], parts[4]
	var err error
	if p.Priority, err = strconv.Atoi(parts[2]); err != nil || p.Priority < 0 || p.Priority > 9 {
		return p, false
	}
	if parts[3] != "" {
		micro, err := strconv.ParseInt(parts[3], 10, 64)
		if err != nil || micro < 0 || micro > maxMicro {
			return p, false
		}
		p.Next = time.UnixMicro(micro).UTC()
	}
	return p, true
}

// maxMicro is the year 9999.
const maxMicro = 253_402_300_799_000_000
