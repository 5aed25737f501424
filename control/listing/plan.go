// Package listing plans how a page of calls is found, as SQL. It is pure.
package listing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/spelling"
)

// A Filter says which calls of an organization are asked for. Zero values ask
// for all.
type Filter struct {
	OrgID string
	// Of these columns the value must be one of those named.
	Statuses, Types, Agents, Campaigns, Contacts, Imports, Trunks, Routes []string
	Reasons, AnsweredBy, ExternalIDs                                      []string
	// Digits; a number matches however it is written.
	To, From                    string
	CreatedAfter, CreatedBefore *time.Time
	MinDurationS, MaxDurationS  *float64
	Ascending                   bool
	AfterTime                   time.Time // with AfterID: where the page before ended
	AfterID                     string
	Limit                       int
}

// A Listing is a page as SQL. The calls that meet its most telling condition are
// read from that one's index, in the order of the list; of the first so many,
// those that meet the other conditions are the page.
type Listing struct {
	Args   []any
	Looked int    // how many of Args the calls that are looked at need
	Page   string // finds the page
	End    string // finds the last call that was looked at; empty where the page is all of them
}

// arg adds an argument: what comes from outside is one, always.
func (l *Listing) arg(v any) string {
	l.Args = append(l.Args, v)
	return fmt.Sprintf("$%d", len(l.Args))
}

// A clause is one condition of a filter.
type clause struct {
	// One of the values is what the call has there.
	column string
	values []string
	// Conditions that have an index, where the values alone have none; a call
	// meets one of them at most.
	each []string
	// The whole condition, where each is only part of it.
	whole func(*Listing) string
	// No index finds these calls.
	loose bool
}

// conditions find the calls of a clause, each by an index.
func (c clause) conditions(l *Listing) []string {
	if c.each != nil {
		return c.each
	}
	all := make([]string, len(c.values))
	for i, v := range c.values {
		all[i] = c.column + " = " + l.arg(v)
	}
	return all
}

// condition is the clause as one condition, which no index is asked for.
func (c clause) condition(l *Listing) string {
	if c.whole != nil {
		return c.whole(l)
	}
	return c.column + " = ANY (" + l.arg(c.values) + ")"
}

// Plan plans a page that looks at scan calls. The calls are read as columns say, of
// the table c, without their variables.
func (f Filter) Plan(scan int, columns string) Listing {
	var l Listing
	order, before := "DESC", "<"
	if f.Ascending {
		order, before = "ASC", ">"
	}
	all := []string{"c.org_id = " + l.arg(f.OrgID), "c.erased_at IS NULL"}
	if f.CreatedAfter != nil {
		all = append(all, "c.created_at > "+l.arg(*f.CreatedAfter))
	}
	if f.CreatedBefore != nil {
		all = append(all, "c.created_at < "+l.arg(*f.CreatedBefore))
	}
	if f.AfterID != "" {
		all = append(all, fmt.Sprintf("(c.created_at, c.id) %s (%s, %s)", before, l.arg(f.AfterTime), l.arg(f.AfterID)))
	}
	found, rest := []string{"true"}, f.clauses()
	if len(rest) > 0 && !rest[0].loose {
		found = rest[0].conditions(&l)
		if rest[0].whole == nil {
			rest = rest[1:]
		}
	}
	look := f.Limit + 1
	if len(rest) > 0 {
		look = max(scan, look)
	}
	by := fmt.Sprintf(" ORDER BY c.created_at %s, c.id %s", order, order)
	branches := make([]string, len(found))
	for i, cond := range found {
		branches[i] = fmt.Sprintf("(SELECT c.* FROM calls c WHERE %s%s LIMIT %d)", strings.Join(append(slices.Clone(all), cond), " AND "), by, look)
	}
	looked := fmt.Sprintf("(SELECT c.* FROM (%s) c%s LIMIT %d) c", strings.Join(branches, " UNION ALL "), by, look)
	l.Looked = len(l.Args)
	where := []string{"true"}
	for _, c := range rest {
		where = append(where, c.condition(&l))
	}
	l.Page = fmt.Sprintf("SELECT %s FROM %s WHERE %s%s LIMIT %d", summary(columns), looked, strings.Join(where, " AND "), by, f.Limit+1)
	if len(rest) > 0 {
		l.End = fmt.Sprintf("SELECT c.created_at, c.id FROM %s%s OFFSET %d LIMIT 1", looked, by, look-1)
	}
	return l
}

// summary are the columns of a summary: without the variables, which may be long.
func summary(columns string) string {
	return strings.NewReplacer(
		"c.variables", "'{}'::json",
		"coalesce(a.name, c.agent_name)", "coalesce((SELECT a.name FROM agents a WHERE a.id = c.agent_id), c.agent_name)",
	).Replace(columns)
}

// clauses are the conditions, the one that few calls meet first: by what is
// asked for, since what calls there are is not known here.
func (f Filter) clauses() []clause {
	status, types := clause{column: "c.status", values: f.Statuses}, clause{column: "c.call_type", values: f.Types, loose: true}
	all := []clause{
		{column: "c.contact_id", values: f.Contacts},
		{column: "c.external_id", values: f.ExternalIDs},
		{column: "c.to_number", values: numbers(f.To)},
		{column: "c.import_id", values: f.Imports},
	}
	over := slices.ContainsFunc(f.Statuses, func(s string) bool { return control.Status(s).Over() })
	if !over {
		all = append(all, status)
	}
	if slices.Contains(f.Types, "web") {
		types.each, types.loose = []string{"c.call_type = 'web'"}, false
		if slices.Contains(f.Types, "phone") {
			types = clause{} // every call
		}
		all = append(all, types)
	}
	all = append(all,
		clause{column: "c.campaign_id", values: f.Campaigns},
		clause{column: "c.from_number", values: numbers(f.From)},
		clause{column: "c.answered_by", values: f.AnsweredBy},
		clause{column: "c.disconnection_reason", values: f.Reasons},
		clause{column: "c.agent_name", values: f.Agents},
		clause{column: "c.route_id", values: f.Routes},
		clause{column: "c.trunk_id", values: f.Trunks},
		f.duration(),
	)
	if over {
		all = append(all, status)
	}
	if types.loose {
		all = append(all, types)
	}
	return slices.DeleteFunc(all, func(c clause) bool { return len(c.values) == 0 && len(c.each) == 0 })
}

// numbers are the ways in which a number may stand in a row.
func numbers(digits string) []string {
	if digits == "" {
		return nil
	}
	var all []string
	for _, d := range spelling.All(digits) {
		all = append(all, d, "+"+d)
	}
	return all
}

// classes are the bounds of duration_class, in seconds: a class is how many of
// them a duration is not below.
var classes = []float64{5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 1800, 3600} //nolint:gochecknoglobals // read-only table

func class(seconds float64) int {
	n, exact := slices.BinarySearch(classes, seconds)
	if exact {
		n++
	}
	return n
}

// duration finds calls by how long they were on.
func (f Filter) duration() clause {
	least, most := f.MinDurationS, f.MaxDurationS
	if least == nil && most == nil {
		return clause{}
	}
	from, to := 0, len(classes)
	if least != nil {
		from = class(*least)
	}
	if most != nil {
		to = class(*most)
	}
	c := clause{whole: func(l *Listing) string {
		const took = "extract(epoch FROM c.ended_at - c.answered_at)"
		var both []string
		if least != nil {
			both = append(both, took+" >= "+l.arg(*least)+"::float8")
		}
		if most != nil {
			both = append(both, took+" <= "+l.arg(*most)+"::float8")
		}
		return strings.Join(both, " AND ")
	}}
	for n := from; n <= to; n++ {
		c.each = append(c.each, fmt.Sprintf("c.duration_class = %d", n))
	}
	if c.each == nil {
		c.each = []string{"false"}
	}
	return c
}
