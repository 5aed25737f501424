// Package screen holds contacts against do-not-call lists: the organization's
// own, and the registries of its market.
package screen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Statuses of a screen.
const (
	Clean       = "clean"
	Matched     = "matched"
	Unscreened  = "unscreened"   // no registry was loaded
	Partial     = "partial"      // some rows no registry covers
	Stale       = "stale"        // the copy is too old
	NotScreened = "not_screened" // there is no list
)

// Shown is how many matches a screen lists.
const Shown = 50

// OwnList is the organization's own list, as matches name it.
const OwnList = "org_suppression"

// A Candidate is a row that could be called.
type Candidate struct {
	Row    int
	Number string // E.164
	Name   string
}

// A Match is a candidate that is on a list.
type Match struct {
	Row      int    `json:"row"`
	Phone    string `json:"phone"`
	Name     string `json:"name"`
	Registry string `json:"registry"`
	Source   string `json:"source"`    // registry, organization
	ListedAt *int64 `json:"listed_at"` // where the list tells it
}

// A Registry is one copy of a list of a market.
type Registry struct {
	Name, Version string
	Downloaded    time.Time
	// Has tells whether a number is listed, and whether its area is covered.
	Has func(e164 string) (listed, loaded bool)
}

// Lists are what candidates are held against.
type Lists struct {
	Own        func(e164 string) bool // the organization's
	Registries []Registry
	// Expected tells that the market has a registry: rows that none covers are
	// unscreened then.
	Expected   bool
	StaleAfter time.Duration // 0 never
}

// Copies are the registries, for the record.
func (l Lists) Copies() []string {
	var all []string
	for _, r := range l.Registries {
		all = append(all, r.Name+" "+r.Version)
	}
	return all
}

// A Screen is what came of it.
type Screen struct {
	Status     string `json:"status"`
	Checked    int    `json:"checked_rows"`
	Unscreened int    `json:"unscreened_rows"`
	Matched    int    `json:"matched_rows"`
	// Suppressed is how many contacts are suppressed for it.
	Suppressed    int     `json:"suppressed_contacts"`
	Hidden        int     `json:"hidden_rows"`
	Fingerprint   string  `json:"fingerprint"`
	Items         []Match `json:"items"`
	HasMore       bool    `json:"has_more"`
	AllSuppressed bool    `json:"all_dialable_suppressed"`
	AsOfLaunch    bool    `json:"as_of_launch"`
	ScreenedAt    int64   `json:"screened_at"` // epoch seconds
	AuditID       int64   `json:"audit_id"`
	Decision      string  `json:"decision"`
	ImportID      string  `json:"import_id"`
}

// None is the screen of a campaign without a list.
func None() Screen { return Screen{Status: NotScreened, Items: []Match{}} }

// Run screens candidates. It returns the matches too, all of them.
func Run(all []Candidate, l Lists, now time.Time) (Screen, []Match) {
	s := Screen{Status: Clean, Items: []Match{}, ScreenedAt: now.Unix()}
	var matches []Match
	for _, c := range all {
		m, covered := l.look(c)
		if l.Expected && !covered {
			s.Unscreened++
		} else {
			s.Checked++
		}
		if m != nil {
			matches = append(matches, *m)
		}
	}
	s.Matched = len(matches)
	s.Items = append(s.Items, matches[:min(len(matches), Shown)]...)
	s.Hidden = s.Matched - len(s.Items)
	s.HasMore = s.Hidden > 0
	s.AllSuppressed = len(all) > 0 && s.Matched == len(all)
	s.Fingerprint = fingerprint(matches, s.Checked, s.Unscreened)
	s.Status = l.status(s, len(all), now)
	return s, matches
}

// look finds the first list that a candidate is on, the organization's before
// the others, and tells whether a registry covers it.
func (l Lists) look(c Candidate) (found *Match, covered bool) {
	if l.Own != nil && l.Own(c.Number) {
		found = &Match{Row: c.Row, Phone: c.Number, Name: c.Name, Registry: OwnList, Source: "organization"}
	}
	for _, r := range l.Registries {
		listed, loaded := r.Has(c.Number)
		covered = covered || loaded
		if listed && found == nil {
			found = &Match{Row: c.Row, Phone: c.Number, Name: c.Name, Registry: r.Name, Source: "registry"}
		}
	}
	return found, covered
}

func (l Lists) status(s Screen, rows int, now time.Time) string {
	switch {
	case l.Expected && rows > 0 && s.Unscreened == rows && s.Matched == 0:
		return Unscreened
	case l.TooOld(now):
		return Stale
	case s.Matched > 0:
		return Matched
	case s.Unscreened > 0:
		return Partial
	case !l.Expected && len(l.Registries) == 0 && l.Own == nil:
		return Unscreened
	default:
		return Clean
	}
}

// TooOld tells whether a registry's copy may not be used any more.
func (l Lists) TooOld(now time.Time) bool {
	return l.StaleAfter > 0 && slices.ContainsFunc(l.Registries, func(r Registry) bool { return now.Sub(r.Downloaded) > l.StaleAfter })
}

// Unusable tells whether nobody may be called who is to be held against the
// registries: one is too old, or there is none where the market has one.
func (l Lists) Unusable(now time.Time) bool {
	return l.TooOld(now) || l.Expected && len(l.Registries) == 0
}

// Age is the age of the oldest copy, 0 where there is none.
func (l Lists) Age(now time.Time) time.Duration {
	var age time.Duration
	for _, r := range l.Registries {
		age = max(age, now.Sub(r.Downloaded))
	}
	return age
}

// fingerprint changes if and only if the outcome would: it is over the numbers
// that matched, and how many rows were checked and were not. Another copy of a
// registry that says the same of these rows changes nothing; the audit tells
// which copy it was.
func fingerprint(matches []Match, checked, unscreened int) string {
	var numbers []string
	for _, m := range matches {
		numbers = append(numbers, m.Phone)
	}
	slices.Sort(numbers)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%d|%d", strings.Join(numbers, ","), checked, unscreened))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Digest is a SHA-256 over the numbers of candidates in their order.
func Digest(all []Candidate) []byte {
	h := sha256.New()
	for _, c := range all {
		_, _ = io.WriteString(h, c.Number+"\n")
	}
	return h.Sum(nil)
}
