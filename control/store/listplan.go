package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/phonenumber"
)

// Filter selects calls of an organization. A field with its zero value does not restrict the selection.
type Filter struct {
	OrgID string
	// A non-empty slice selects the calls with one of its values.
	Statuses, Types, Agents, Campaigns, Contacts, Imports, Trunks, Routes []string
	Reasons, AnsweredBy, ExternalIDs                                      []string
	// To and From are digits. Every form of the number matches.
	To, From                    string
	CreatedAfter, CreatedBefore *time.Time
	// Created selects calls that were created in one of these spans, which do not overlap.
	Created                    []Span
	MinDurationS, MaxDurationS *float64
	// AgentIDs selects by id what Agents selects by name. With both, a call must match both.
	AgentIDs []string
	// WithoutCampaign selects calls that belong to no campaign.
	WithoutCampaign bool
	Counted         Counted
	// Text is what was said on the call, in the syntax of websearch_to_tsquery.
	Text string
	// Tag selects calls with a tag, Score those with one of these scores.
	Tag       string
	Scores    []int
	ids       []string // ids of the calls to select from
	Ascending bool
	// Slowest orders calls by their slowest response instead of their time, and selects those that have one.
	Slowest bool
	// AfterTime and AfterID are the last call of the previous page. With Slowest, AfterTime is its SlowestPosition.
	AfterTime time.Time
	AfterID   string
	Limit     int
}

// A Span is a time range without its end.
type Span struct{ From, To time.Time }

// Counted selects calls by their row in the statistics of calls.
type Counted struct {
	// Outcomes are numbers of overview.Outcome.
	Outcomes []int
	// Successful selects by the result of the analysis, KnownSuccess calls with one, Timed those with a
	// response time, and Costed those with a known cost.
	Successful                  *bool
	KnownSuccess, Timed, Costed bool
}

// listQuery is the SQL that reads a page. An index finds the calls that meet the most selective condition, in list
// order. Only the first of these calls are checked against the other conditions; the argument scan of plan limits
// their number.
type listQuery struct {
	Args     []any
	ScanArgs int    // number of leading Args that End uses
	Page     string // query of the page
	End      string // query of the last scanned call; empty if every scanned call matches
}

// arg adds an argument and returns its placeholder. Every value from outside is passed this way.
func (l *listQuery) arg(v any) string {
	l.Args = append(l.Args, v)
	return fmt.Sprintf("$%d", len(l.Args))
}

// clause is one restriction of a filter.
type clause struct {
	// column must have one of values.
	column string
	values []string
	// together makes one condition of all values.
	together bool
	// each replaces column and values if these have no index. An index supports each of its conditions, and a call
	// meets at most one of them.
	each []string
	// whole, if set, returns the complete condition. The conditions in each then only narrow the search.
	whole func(*listQuery) string
	// loose means that no index supports the clause.
	loose bool
}

// conditions returns conditions that together select the calls of a clause. Each is supported by an index.
func (c clause) conditions(l *listQuery) []string {
	if c.together {
		return []string{c.condition(l)}
	}
	if c.each != nil {
		return c.each
	}
	all := make([]string, len(c.values))
	for i, v := range c.values {
		all[i] = c.column + " = " + l.arg(v)
	}
	return all
}

// condition returns the clause as one SQL condition that need not use an index.
func (c clause) condition(l *listQuery) string {
	if c.whole != nil {
		return c.whole(l)
	}
	return c.column + " = ANY (" + l.arg(c.values) + ")"
}

// selectListed is selectCall without the variables, which may be long. A subquery replaces the join with agents.
var selectListed = callColumns.ReadAs("variables", "'{}'::json"). //nolint:gochecknoglobals // made once
									ReadAs("agent_name", "coalesce((SELECT a.name FROM agents a WHERE a.id = c.agent_id), %s)").Select("c")

// plan returns the query of a page. The argument scan limits the number of calls that the query scans.
func (f Filter) plan(scan int) listQuery {
	var l listQuery
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
		branches[i] = fmt.Sprintf(
			"(SELECT c.* FROM calls c WHERE %s%s LIMIT %d)", strings.Join(append(slices.Clone(all), cond), " AND "), by, look,
		)
	}
	looked := fmt.Sprintf("(SELECT c.* FROM (%s) c%s LIMIT %d) c", strings.Join(branches, " UNION ALL "), by, look)
	l.ScanArgs = len(l.Args)
	where := []string{"true"}
	for _, c := range rest {
		where = append(where, c.condition(&l))
	}
	l.Page = fmt.Sprintf("SELECT %s FROM %s WHERE %s%s LIMIT %d", selectListed, looked, strings.Join(where, " AND "), by, f.Limit+1)
	if len(rest) > 0 {
		l.End = fmt.Sprintf("SELECT c.created_at, c.id FROM %s%s OFFSET %d LIMIT 1", looked, by, look-1)
	}
	return l
}

// clauses returns the restrictions, the most selective first. The order is fixed because the distribution of the data
// is unknown.
func (f Filter) clauses() []clause {
	status, types := clause{column: "c.status", values: f.Statuses}, clause{column: "c.call_type", values: f.Types, loose: true}
	all := []clause{
		{column: "c.id", values: f.ids, together: true},
		{column: "c.contact_id", values: f.Contacts},
		{column: "c.external_id", values: f.ExternalIDs},
		{column: "c.to_number", values: numbers(f.To)},
		f.tagged(), f.scored(),
		{column: "c.import_id", values: f.Imports},
	}
	over := slices.ContainsFunc(f.Statuses, func(s string) bool { return control.Status(s).Over() })
	if !over {
		all = append(all, status)
	}
	all = append(all, f.created())
	if slices.Contains(f.Types, "web") {
		types.each, types.loose = []string{"c.call_type = 'web'"}, false
		if slices.Contains(f.Types, "phone") {
			types = clause{} // all types are selected, so this restricts nothing
		}
		all = append(all, types)
	}
	all = append(all,
		clause{column: "c.campaign_id", values: f.Campaigns},
		clause{column: "c.from_number", values: numbers(f.From)},
		f.Counted.clause(),
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
	if len(f.AgentIDs) > 0 {
		all = append(all, unindexed(func(l *listQuery) string { return "c.agent_id = ANY (" + l.arg(f.AgentIDs) + ")" }))
	}
	if f.WithoutCampaign {
		all = append(all, unindexed(func(*listQuery) string { return "c.campaign_id IS NULL" }))
	}
	if f.Text != "" && !f.textLeads() {
		all = append(all, unindexed(func(l *listQuery) string {
			return "EXISTS (SELECT FROM call_words w WHERE w.call_id = c.id AND " +
				"w.words @@ websearch_to_tsquery('" + wordConfig + "', " + l.arg(lowerText(f.Text)) + "))"
		}))
	}
	slices.SortStableFunc(all, func(a, b clause) int { return cmp.Compare(looseness(a), looseness(b)) })
	return slices.DeleteFunc(all, func(c clause) bool { return len(c.values) == 0 && len(c.each) == 0 })
}

// tagged and scored return the clauses of what operators added to calls.
func (f Filter) tagged() clause {
	if f.Tag == "" {
		return clause{}
	}
	return clause{each: []string{"true"}, together: true, whole: func(l *listQuery) string {
		return "c.id IN (SELECT t.call_id FROM call_tags t WHERE t.org_id = " + l.arg(f.OrgID) + " AND t.tag = " + l.arg(f.Tag) + ")"
	}}
}

func (f Filter) scored() clause {
	if len(f.Scores) == 0 {
		return clause{}
	}
	return clause{each: []string{"true"}, together: true, whole: func(l *listQuery) string {
		return "c.id IN (SELECT t.call_id FROM call_scores t WHERE t.org_id = " + l.arg(f.OrgID) + " AND " +
			"t.score = ANY (" + l.arg(f.Scores) + "::int[]))"
	}}
}

// textLeads reports whether a search begins with the words of transcripts. Otherwise another condition selects few calls.
func (f Filter) textLeads() bool {
	few := f.hasFewCalls() || f.Tag != "" || len(f.Scores) > 0
	return f.Text != "" && !few && !f.Slowest
}

// unindexed returns a clause that no index supports.
func unindexed(condition func(*listQuery) string) clause {
	return clause{each: []string{"true"}, whole: condition, loose: true}
}

func looseness(c clause) int {
	if c.loose {
		return 1
	}
	return 0
}

// created returns the clause of Created.
func (f Filter) created() clause {
	if len(f.Created) == 0 {
		return clause{}
	}
	within := func(s Span) string {
		const form = time.RFC3339Nano
		return fmt.Sprintf("c.created_at >= '%s' AND c.created_at < '%s'", s.From.UTC().Format(form), s.To.UTC().Format(form))
	}
	var c clause
	for _, s := range f.Created {
		c.each = append(c.each, within(s))
	}
	c.whole = func(*listQuery) string { return "((" + strings.Join(c.each, ") OR (") + "))" }
	return c
}

// clause returns the clause of the statistics. An index supports outcomes that follow from a few values of
// another column.
func (k Counted) clause() clause {
	if len(k.Outcomes) == 0 && k.Successful == nil && !k.KnownSuccess && !k.Timed && !k.Costed {
		return clause{}
	}
	c := unindexed(func(l *listQuery) string {
		all := []string{"s.call_id = c.id"}
		if k.KnownSuccess {
			all = append(all, "s.successful IS NOT NULL")
		}
		if k.Timed {
			all = append(all, "s.times <> ''")
		}
		if k.Costed {
			all = append(all, "s.cost_nano IS NOT NULL")
		}
		if len(k.Outcomes) > 0 {
			all = append(all, "s.outcome = ANY ("+l.arg(k.Outcomes)+"::int[])")
		}
		if k.Successful != nil {
			all = append(all, "s.successful = "+l.arg(*k.Successful))
		}
		return "EXISTS (SELECT FROM call_stats s WHERE " + strings.Join(all, " AND ") + ")"
	})
	var each []string
	for _, o := range k.Outcomes {
		narrow, ok := outcomeColumns[o]
		if !ok {
			return c
		}
		each = append(each, narrow...)
	}
	if each != nil {
		c.each, c.loose = each, false
	}
	return c
}

// outcomeColumns are conditions, by outcome: each of its calls meets one of them.
var outcomeColumns = map[int][]string{ //nolint:gochecknoglobals // read-only table
	1: {"c.answered_by = 'voicemail'", "c.answered_by = 'ivr'", "c.answered_by = 'fax'"},
	2: {"c.disconnection_reason = 'no_answer'"},
	3: {"c.disconnection_reason = 'busy'"},
	4: {"c.disconnection_reason = 'declined'", "c.disconnection_reason = 'blocked'", "c.disconnection_reason = 'invalid_number'"},
}

// numbers returns all forms in which a number may be stored.
func numbers(digits string) []string {
	if digits == "" {
		return nil
	}
	var all []string
	for _, d := range phonenumber.Forms(digits) {
		all = append(all, d, "+"+d)
	}
	return all
}

// classes are the bounds, in seconds, of the column duration_class. The class of a call is the number of bounds that
// its duration reaches.
var classes = []float64{5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 1800, 3600} //nolint:gochecknoglobals // read-only table

func class(seconds float64) int {
	n, exact := slices.BinarySearch(classes, seconds)
	if exact {
		n++
	}
	return n
}

// duration returns the clause that selects calls by their duration.
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
	c := clause{whole: func(l *listQuery) string {
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
