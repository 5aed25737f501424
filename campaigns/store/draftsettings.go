package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/control/db"
)

// SettingsEdited is the SeenFingerprint of a draft whose settings nobody has read since an edit. It equals no fingerprint, so that
// the draft is not launched before it is read.
const SettingsEdited = "edited"

// SaveSettings replaces the settings of a draft.
func (s *Store) SaveSettings(ctx context.Context, q db.Querier, c campaigns.Campaign) error {
	retryJSON, err := json.Marshal(c.Retry)
	if err != nil {
		return err
	}
	hoursJSON, err := json.Marshal(c.WorkingHours)
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, q, "campaign "+c.ID, `
		UPDATE campaigns SET name = $2, agent_id = $3, agent_name = $4, timezone = $5, timezone_source = $6, starts_at = $7, ends_at = $8,
			calls_per_minute = $9, call_strategy = $10, classification = $11, retry = $12, use_contact_timezone = $13, working_hours = $14,
			trunk_id = $15, route_id = $16, from_number = $17, budget_nano = nullif($18::bigint, 0), updated_at = $19, seen_fingerprint = $20
		WHERE id = $1 AND status = 'draft'`,
		c.ID, c.Name, c.AgentID, c.AgentName, c.Timezone, c.TimezoneSource, nullTime(c.StartsAt), nullTime(c.EndsAt),
		c.CallsPerMinute, c.Retry.Strategy, c.Classification, retryJSON, c.ContactTimezone, hoursJSON,
		c.Binding.TrunkID, c.Binding.RouteID, c.Binding.FromNumber, int64(c.Budget), c.UpdatedAt, SettingsEdited)
	return err
}

// PendingGroups returns the keys of the calling hours of the pending contacts of a campaign.
func (Contacts) PendingGroups(ctx context.Context, q db.Querier, campaignID string) ([]string, error) {
	return db.Collect(ctx, q, "contacts", pgx.RowTo[string], `
		SELECT hours_group FROM contact_tallies WHERE campaign_id = $1 AND state = 'pending' GROUP BY 1 HAVING sum(n) > 0 ORDER BY 1`, campaignID)
}

// SuppressGroups suppresses the pending contacts of some groups.
func (Contacts) SuppressGroups(ctx context.Context, tx pgx.Tx, campaignID string, groups []string, reason string, now time.Time) error {
	if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = '5min'"); err != nil { // long lists take longer
		return err
	}
	_, err := db.Exec(ctx, tx, "contacts", `
		UPDATE contacts SET state = 'suppressed', reason = $3, next_attempt_at = NULL, updated_at = $4
		WHERE campaign_id = $1 AND state = 'pending' AND hours_group = ANY ($2)`, campaignID, groups, reason, now)
	return err
}

// A CopiedContact is what another campaign takes over of a contact. The consent is not among it.
type CopiedContact struct {
	Number, Name, Timezone, ExternalID, Language string
	Priority                                     int
	NotBefore, NotAfter                          *time.Time
	Variables, Metadata                          string
}

// EachCopied calls each for the contacts of a campaign in the given states, in the order of their lists. Contacts that
// were withdrawn, removed or opted out are not among them.
func (Contacts) EachCopied(
	ctx context.Context, q db.Querier, campaignID string, states []campaigns.State, each func(CopiedContact) error,
) error {
	var c CopiedContact
	return db.Each(ctx, q, "contacts", []any{
		&c.Number, &c.Name, &c.Timezone, &c.ExternalID, &c.Language, &c.Priority, &c.NotBefore, &c.NotAfter, &c.Variables, &c.Metadata,
	}, func() error { return each(c) }, `
		SELECT number, name, timezone, external_id, language, priority, not_before, not_after, variables::text, metadata::text FROM contacts
		WHERE campaign_id = $1 AND state = ANY ($2) AND reason <> ALL ($3) ORDER BY created_at, import_id, n`, campaignID, states,
		[]string{campaigns.WithdrawnByClient, campaigns.OperatorRemoved, campaigns.OptedOut})
}
