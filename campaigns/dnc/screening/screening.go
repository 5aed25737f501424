// Package screening checks contacts against the organization's suppression list and
// the do-not-call registries of its market.
package screening

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"
)

// Statuses of a screening.
const (
	Clean       = "clean"
	Matched     = "matched"
	Unscreened  = "unscreened"   // no registry was loaded
	Partial     = "partial"      // some rows are covered by no registry
	Stale       = "stale"        // a registry copy is too old
	NotScreened = "not_screened" // the campaign has no contact list
)

// MaxItems bounds the matches in a Screen.
const MaxItems = 50

// OwnList names the organization's list in matches.
const OwnList = "org_suppression"

// A Candidate is a row that may be called.
type Candidate struct {
	Row    int
	Number string // E.164
	Name   string
}

// A Match is a candidate on a list.
type Match struct {
	Row      int    `json:"row"`
	Phone    string `json:"phone"`
	Name     string `json:"name"`
	Registry string `json:"registry"`
	Source   string `json:"source"`    // "registry" or "organization"
	ListedAt *int64 `json:"listed_at"` // when the number was listed, if the list has the time
}

// A Registry is one copy of a market's registry.
type Registry struct {
	Name, Version string
	Downloaded    time.Time
	// Has reports whether a number is listed, and whether its area is loaded.
	Has func(e164 string) (listed, loaded bool)
}

// Lists are the lists of a screening.
type Lists struct {
	Own        func(e164 string) bool // the organization's own list
	Registries []Registry
	// Expected reports that the market has a registry, so that uncovered rows count as unscreened.
	Expected   bool
	StaleAfter time.Duration // 0 means never
}

// Versions returns the registries with their versions.
func (l Lists) Versions() []string {
	var all []string
	for _, r := range l.Registries {
		all = append(all, r.Name+" "+r.Version)
	}
	return all
}

// A Screen is the result of a screening.
type Screen struct {
	Status     string `json:"status"`
	Checked    int    `json:"checked_rows"`
	Unscreened int    `json:"unscreened_rows"`
	Matched    int    `json:"matched_rows"`
	// Suppressed counts the contacts that the screening suppressed.
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

// None returns the result for a campaign without a contact list.
func None() Screen { return Screen{Status: NotScreened, Items: []Match{}} }

// A Screening screens candidates part by part, so that they need not be in memory at the same time.
type Screening struct {
	Lists Lists

	checked, unscreened int
	matches             []Match
	digest              hash.Hash
}

// Add screens further candidates.
func (x *Screening) Add(all []Candidate) {
	if x.digest == nil {
		x.digest = sha256.New()
	}
	for _, c := range all {
		m, covered := x.Lists.match(c)
		if x.Lists.Expected && !covered {
			x.unscreened++
		} else {
			x.checked++
		}
		if m != nil {
			x.matches = append(x.matches, *m)
		}
		_, _ = io.WriteString(x.digest, c.Number+"\n")
	}
}

// Digest returns a SHA-256 of the candidates' numbers in order.
func (x *Screening) Digest() []byte {
	x.Add(nil)
	return x.digest.Sum(nil)
}

// Result returns the result, and all matches.
func (x *Screening) Result(now time.Time) (Screen, []Match) {
	s := Screen{Status: Clean, Items: []Match{}, ScreenedAt: now.Unix(), Checked: x.checked, Unscreened: x.unscreened}
	rows, matches := x.checked+x.unscreened, x.matches
	s.Matched = len(matches)
	s.Items = append(s.Items, matches[:min(len(matches), MaxItems)]...)
	s.Hidden = s.Matched - len(s.Items)
	s.HasMore = s.Hidden > 0
	s.AllSuppressed = rows > 0 && s.Matched == rows
	s.Fingerprint = fingerprint(matches, s.Checked, s.Unscreened)
	s.Status = x.Lists.status(s, rows, now)
	return s, matches
}

// match returns the first list that contains a candidate, and whether a registry covers the candidate's number. The
// organization's own list is the first one.
func (l Lists) match(c Candidate) (found *Match, covered bool) {
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
	case l.IsStale(now):
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

// IsStale reports whether a registry copy is too old to use.
func (l Lists) IsStale(now time.Time) bool {
	return l.StaleAfter > 0 && slices.ContainsFunc(l.Registries, func(r Registry) bool { return now.Sub(r.Downloaded) > l.StaleAfter })
}

// IsUnusable reports that contacts that require registry coverage cannot be called, because a
// copy is stale or the market's registry is missing.
func (l Lists) IsUnusable(now time.Time) bool {
	return l.IsStale(now) || l.Expected && len(l.Registries) == 0
}

// Age returns the age of the oldest copy; 0 without copies.
func (l Lists) Age(now time.Time) time.Duration {
	var age time.Duration
	for _, r := range l.Registries {
		age = max(age, now.Sub(r.Downloaded))
	}
	return age
}

// fingerprint returns a text that changes exactly when the result does. It covers the matching numbers, and the
// counts of checked and unscreened rows. It does not cover the version of the registry copy, which the audit records.
func fingerprint(matches []Match, checked, unscreened int) string {
	var numbers []string
	for _, m := range matches {
		numbers = append(numbers, m.Phone)
	}
	slices.Sort(numbers)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%d|%d", strings.Join(numbers, ","), checked, unscreened))
	return "sha256:" + hex.EncodeToString(sum[:])
}
