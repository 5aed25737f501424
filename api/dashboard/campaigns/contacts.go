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
	Says   string    // reason for the state; may be empty
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
	x := contactsPage{Campaign: k, Show: showField(f.Counts, r.Query("show")), Number: r.Query("number")}
	filter, ok := contactFilter(r.Query("show"))
	digits := control.Digits(x.Number)
	if filter.LastTen = digits[max(0, len(digits)-10):]; x.Number != "" && len(digits) < 10 || !ok {
		x.Refused = "Enter the whole number, and choose one of the states."
	}
	x.Filtered = x.Number != "" || r.Query("show") != ""
	after, valid := readPosition(r.Query("cursor"))
	if !valid {
		x.Refused = "This page of the list is no longer valid. Start again from the first."
	}
	if x.Refused == "" {
		all, err := c.API.Store.Contacts.Page(r.Context(), r.DB(), r.Org(), k.ID, filter, after, contactsPerPage+1)
		if err != nil {
			return ui.Page{}, err
		}
		if len(all) > contactsPerPage {
			all = all[:contactsPerPage]
			q := url.Values{"cursor": {writePosition(all[len(all)-1].Position())}}
			if show := r.Query("show"); show != "" {
				q.Set("show", show)
			}
			x.Next = r.HTTP.URL.Path + "?" + q.Encode()
		}
		for _, one := range all {
			x.Rows = append(x.Rows, describe(f, one))
		}
	}
	return ui.Page{
		Template: "contacts.html", Title: "Contacts", Crumbs: crumbs(campaignLink(k)),
		Lead: ui.Plural(f.Counts.Total(), "contact", "contacts"), Data: x,
	}, nil
}

// stateLabels are the states of contacts.
var stateLabels = map[campaigns.State]string{ //nolint:gochecknoglobals // read-only table
	campaigns.InCall: "In call", campaigns.Awaiting: "In analysis", campaigns.Pending: "Ready or waiting",
	campaigns.Done: "Completed", campaigns.Exhausted: "Not reached", campaigns.Suppressed: "Skipped",
}

// showField offers the states that contacts have, and the reasons why contacts are skipped.
func showField(n campaigns.Counts, chosen string) ui.Field {
	f := ui.Field{Name: "show", Label: "Show", Kind: ui.Select, Value: chosen, Options: []ui.Option{{Label: "All contacts"}}}
	add := func(value, label string, n int) {
		f.Options = append(f.Options, ui.Option{Value: value, Label: fmt.Sprintf("%s (%s)", label, ui.Count(n))})
	}
	for _, s := range store.ListedStates() {
		if n.ByState[s] > 0 || chosen == string(s) {
			add(string(s), stateLabels[s], n.ByState[s])
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(n.ByReason)) {
		if n.ByReason[reason] > 0 {
			add(reason, "Skipped: "+lower(label(suppressed, reason)), n.ByReason[reason])
		}
	}
	return f
}

// contactFilter reads a choice of showField.
func contactFilter(show string) (store.ContactFilter, bool) {
	if _, ok := stateLabels[campaigns.State(show)]; ok || show == "" {
		return store.ContactFilter{State: campaigns.State(show)}, true
	}
	_, ok := suppressed[show]
	return store.ContactFilter{State: campaigns.Suppressed, Reason: show}, ok
}

// describe says why a contact has its state, and when it is called next.
func describe(f progress.Facts, one store.ListedContact) contactRow {
	x := contactRow{ListedContact: one, Label: stateLabels[one.State], Class: "busy", Result: label(outcomeWords, one.Outcome)}
	x.Number = ui.FormatNumber(control.Digits(one.Number))
	switch one.State {
	case campaigns.Suppressed:
		x.Class, x.Says = "bad", label(suppressed, one.Reason)
	case campaigns.InCall:
		x.Class = "good"
	case campaigns.Awaiting:
		x.Says = "The analysis of the call decides about another call"
	case campaigns.Exhausted:
		x.Class = ""
		switch {
		case one.Fault != "":
			x.Says = "A fault of Parley or a provider ended the last call. No attempt is left"
		case one.Attempts == 0:
			x.Says = "The time allowed in the row passed"
		default:
			x.Says = "No attempt is left"
		}
	case campaigns.Pending:
		if x.Says, x.When = waiting(f, one); x.Says == "" {
			x.Label, x.Class = "Ready", "good"
		} else {
			x.Label = "Waiting"
		}
	case campaigns.Done:
		x.Class = "good"
	}
	return x
}

// waiting says why a contact is not called now, and when it may be. It says nothing if the contact is ready.
func waiting(f progress.Facts, one store.ListedContact) (says string, next time.Time) {
	if f.Campaign.Status != campaigns.Running {
		return "Campaign is not running", time.Time{}
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
	return label(held, reason), next
}

// outcomeWords are the outcomes of calls to contacts.
var outcomeWords = map[string]string{ //nolint:gochecknoglobals // read-only table
	"answered": "Answered by a person", "short_call": "Answered; ended within 10 s", "voicemail": "Voicemail", "ivr": "Phone menu",
	"no_answer": "No answer", "busy": "Busy", "declined": "Declined", "failed": "Failed", "congestion": "Carrier had no free channel",
	"invalid_number": "Number does not exist",
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
