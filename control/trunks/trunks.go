// Package trunks stores the SIP trunks of organizations, and the subgroups through which agents call on these trunks.
package trunks

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// ErrUnknown is returned if a trunk or subgroup does not exist.
var ErrUnknown = errors.New("trunk not found")

// Default limits of a subgroup.
const (
	DefaultConcurrent = 10
	DefaultPerMinute  = 30
)

// Trunk is a SIP trunk of an organization.
type Trunk struct {
	ID, OrgID, Name string
	Proxy           string // "sip:host:port;transport=udp"
	Username        string
	Password        media.Secret
	CallerNumbers   []string
	CallsPerSecond  float64 // 0 means no limit
	ConcurrentCalls int     // 0 means no limit
	Settings        Settings
}

// Subgroup is a routing group on a trunk for some agents.
type Subgroup struct {
	ID, OrgID, TrunkID, Name string
	DialPrefix               string
	AllowedDestinations      []string // prefixes or names, see Permits; empty allows no destination
	CallerNumbers            []string // empty means the numbers of the trunk
	ConcurrentCalls          int
	CallsPerMinute           int
	GrantID                  string // grant under which the trunk is borrowed; empty if the organization owns the trunk
}

var (
	proxy  = regexp.MustCompile(`^sips?:[^\s<>"@]+$`)
	number = regexp.MustCompile(`^\+?[0-9]{3,15}$`)
	prefix = regexp.MustCompile(`^[0-9*#]{0,16}$`)
	digits = regexp.MustCompile(`^[0-9]{1,15}$`)
)

// Check returns an error if the trunk is invalid.
func (t Trunk) Check() error {
	if !proxy.MatchString(t.Proxy) {
		return fmt.Errorf(`proxy %q is not an address like "sip:host:port;transport=udp"`, t.Proxy)
	}
	for _, n := range t.CallerNumbers {
		if !number.MatchString(n) {
			return fmt.Errorf("caller number %q: use + and 3 to 15 digits", n)
		}
	}
	if t.CallsPerSecond < 0 || t.ConcurrentCalls < 0 {
		return errors.New("limits must not be negative")
	}
	if err := checkNoControl("username", t.Username); err != nil {
		return err
	}
	if err := checkNoControl("password", string(t.Password)); err != nil {
		return err
	}
	return t.Settings.check(t.Username)
}

// Check returns an error if the subgroup is invalid.
func (s Subgroup) Check() error {
	if !prefix.MatchString(s.DialPrefix) {
		return fmt.Errorf("dial_prefix %q: use up to 16 digits", s.DialPrefix)
	}
	for _, d := range s.AllowedDestinations {
		if !digits.MatchString(d) && d != UnitedStates && d != Canada {
			return fmt.Errorf("allowed destination %q: use the first digits of numbers, without +, or US or CA", d)
		}
	}
	for _, n := range s.CallerNumbers {
		if !number.MatchString(n) {
			return fmt.Errorf("caller number %q: use + and 3 to 15 digits", n)
		}
	}
	if s.ConcurrentCalls < 1 || s.CallsPerMinute < 1 {
		return errors.New("concurrent_calls and calls_per_minute must be at least 1")
	}
	return nil
}

// columns are the columns of table trunks, in the order in which scan reads them.
const columns = "id, org_id, name, proxy, username, password, caller_numbers, calls_per_second, concurrent_calls, settings"

func scan(row pgx.Row) (Trunk, error) {
	var t Trunk
	err := row.Scan(&t.ID, &t.OrgID, &t.Name, &t.Proxy, &t.Username, &t.Password, &t.CallerNumbers,
		&t.CallsPerSecond, &t.ConcurrentCalls, &t.Settings)
	return t, err
}

// Find returns the organization's trunk with this name, or ErrUnknown.
func Find(ctx context.Context, q db.Querier, orgID, name string) (Trunk, error) {
	t, err := scan(q.QueryRow(ctx, "SELECT "+columns+" FROM trunks WHERE org_id = $1 AND name = $2", orgID, name))
	if errors.Is(err, pgx.ErrNoRows) {
		return Trunk{}, fmt.Errorf("trunk %q: %w", name, ErrUnknown)
	}
	return t, db.Wrap(err, fmt.Sprintf("trunk %q", name))
}

// Save creates a trunk, or changes the trunk with the same name, and returns its id.
func Save(ctx context.Context, q db.Querier, t Trunk) (string, error) {
	if err := t.Check(); err != nil {
		return "", fmt.Errorf("trunk %q: %w", t.Name, err)
	}
	var id string
	err := q.QueryRow(ctx, `
		INSERT INTO trunks (id, org_id, name, proxy, username, password, caller_numbers, calls_per_second, concurrent_calls, settings)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (org_id, name) DO UPDATE SET proxy = excluded.proxy, username = excluded.username,
			password = excluded.password, caller_numbers = excluded.caller_numbers,
			calls_per_second = excluded.calls_per_second, concurrent_calls = excluded.concurrent_calls,
			settings = excluded.settings
		RETURNING id`,
		control.NewID("trk_", time.Now()), t.OrgID, t.Name, t.Proxy, t.Username, t.Password,
		notNull(t.CallerNumbers), t.CallsPerSecond, t.ConcurrentCalls, t.Settings).Scan(&id)
	return id, db.Wrap(err, fmt.Sprintf("trunk %q", t.Name))
}

// FindSubgroup returns the trunk's subgroup with this name, or ErrUnknown.
func FindSubgroup(ctx context.Context, q db.Querier, orgID, trunkID, name string) (Subgroup, error) {
	s := Subgroup{OrgID: orgID, TrunkID: trunkID, Name: name}
	err := q.QueryRow(ctx, `
		SELECT id, dial_prefix, allowed_destinations, caller_numbers, concurrent_calls, calls_per_minute
		FROM subgroups WHERE org_id = $1 AND trunk_id = $2 AND name = $3`, orgID, trunkID, name).
		Scan(&s.ID, &s.DialPrefix, &s.AllowedDestinations, &s.CallerNumbers, &s.ConcurrentCalls, &s.CallsPerMinute)
	if errors.Is(err, pgx.ErrNoRows) {
		return Subgroup{}, fmt.Errorf("subgroup %q: %w", name, ErrUnknown)
	}
	return s, db.Wrap(err, fmt.Sprintf("subgroup %q", name))
}

// SaveSubgroup creates a subgroup, or changes the subgroup with the same name, and returns its id.
func SaveSubgroup(ctx context.Context, q db.Querier, s Subgroup) (string, error) {
	if err := s.Check(); err != nil {
		return "", fmt.Errorf("subgroup %q: %w", s.Name, err)
	}
	var id string
	err := q.QueryRow(ctx, `
		INSERT INTO subgroups (id, org_id, trunk_id, name, dial_prefix, allowed_destinations, caller_numbers, concurrent_calls, calls_per_minute, grant_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, nullif($10, ''))
		ON CONFLICT (org_id, trunk_id, name) DO UPDATE SET dial_prefix = excluded.dial_prefix,
			allowed_destinations = excluded.allowed_destinations, caller_numbers = excluded.caller_numbers,
			concurrent_calls = excluded.concurrent_calls, calls_per_minute = excluded.calls_per_minute
		RETURNING id`,
		control.NewID("rte_", time.Now()), s.OrgID, s.TrunkID, s.Name, s.DialPrefix,
		notNull(s.AllowedDestinations), notNull(s.CallerNumbers), s.ConcurrentCalls, s.CallsPerMinute, s.GrantID).Scan(&id)
	return id, db.Wrap(err, fmt.Sprintf("subgroup %q", s.Name))
}

// Attach sets which agents may call through a subgroup.
func Attach(ctx context.Context, q db.Querier, orgID, subgroupID string, agentIDs []string) error {
	_, err := q.Exec(ctx, "DELETE FROM subgroup_agents WHERE subgroup_id = $1 AND NOT agent_id = ANY ($2)", subgroupID, notNull(agentIDs))
	if err != nil {
		return fmt.Errorf("attach agents: %w", err)
	}
	_, err = db.Exec(ctx, q, "attach agents", `
		INSERT INTO subgroup_agents (org_id, subgroup_id, agent_id)
		SELECT $1, $2, unnest($3::text[]) ON CONFLICT DO NOTHING`, orgID, subgroupID, notNull(agentIDs))
	return err
}

// notNull returns s, or an empty slice for nil, because nil would become NULL in SQL.
func notNull(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
