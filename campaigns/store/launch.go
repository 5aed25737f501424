package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/screen"
	"github.com/parley-voice/parley/control/db"
)

// Candidates are the contacts of an import that could be called, in order of
// its rows: those that only a do-not-call list, or nothing, keeps from it.
func (s *Store) Candidates(ctx context.Context, q db.Querier, importID string) ([]screen.Candidate, error) {
	found, err := q.Query(ctx, `
		SELECT n, number, name FROM contacts
		WHERE import_id = $1 AND (state <> 'suppressed' OR reason = 'dnc_suppressed') ORDER BY n`, importID)
	if err != nil {
		return nil, fmt.Errorf("contacts: %w", err)
	}
	all, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (c screen.Candidate, err error) {
		return c, row.Scan(&c.Row, &c.Number, &c.Name)
	})
	if err != nil {
		return nil, fmt.Errorf("contacts: %w", err)
	}
	return all, nil
}

// SuppressListed keeps those waiting contacts from being called whose numbers
// are on a do-not-call list, at the launch, and tells how many they are.
func (s *Store) SuppressListed(ctx context.Context, q db.Querier, campaignID string, numbers []string, now time.Time) (int, error) {
	tag, err := q.Exec(ctx, `
		UPDATE contacts SET state = 'suppressed', reason = 'dnc_suppressed', dnc_at_launch = true, updated_at = $3
		WHERE campaign_id = $1 AND state = 'pending' AND number = ANY ($2)`, campaignID, numbers, now)
	if err != nil {
		return 0, fmt.Errorf("contacts: %w", err)
	}
	return int(tag.RowsAffected()), nil
}

// Audit keeps what was screened against what, and returns the record's number.
func (s *Store) Audit(ctx context.Context, q db.Querier, c campaigns.Campaign, x screen.Screen, copies []string, rules string) (int64, error) {
	text, err := json.Marshal(x)
	if err != nil {
		return 0, err
	}
	if copies == nil {
		copies = []string{}
	}
	var id int64
	err = q.QueryRow(ctx, `
		INSERT INTO dnc_audit (org_id, campaign_id, import_id, screen, registries, rules) VALUES ($1, $2, $3, $4, to_jsonb($5::text[]), $6)
		RETURNING id`, c.OrgID, c.ID, x.ImportID, text, copies, rules).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("audit: %w", err)
	}
	return id, nil
}

// textVersion is the version of what one confirms with confirmed: true.
const textVersion = "2026-11"

// An Attestation is that somebody confirmed the consent of the contacts.
type Attestation struct {
	ID, OrgID, CampaignID, ImportID string
	KeyID, Actor                    string
	Tier, Classification            string
	IP, UserAgent                   string
	Contacts                        []byte // SHA-256 of the numbers
	Fingerprint                     string // of the screen
	At                              time.Time
}

// Attest keeps an attestation, for good.
func (s *Store) Attest(ctx context.Context, q db.Querier, a Attestation) error {
	_, err := q.Exec(ctx, `
		INSERT INTO attestations (id, org_id, campaign_id, import_id, api_key_id, actor, consent_tier, classification, text_version,
			ip, user_agent, contacts, fingerprint, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		a.ID, a.OrgID, a.CampaignID, a.ImportID, a.KeyID, a.Actor, a.Tier, a.Classification, textVersion,
		a.IP, a.UserAgent, a.Contacts, a.Fingerprint, a.At)
	if err != nil {
		return fmt.Errorf("attestation: %w", err)
	}
	return nil
}

// Line tells whether the subgroup of a campaign is there, and whether its
// agent records.
func (s *Store) Line(ctx context.Context, q db.Querier, c campaigns.Campaign) (there, records bool, err error) {
	err = q.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM subgroups WHERE org_id = $1 AND id = $2 AND trunk_id = $3),
			coalesce((SELECT (v.definition ->> 'recording')::boolean FROM agents a
				JOIN agent_versions v ON v.agent_id = a.id AND v.version = a.published_version
				WHERE a.org_id = $1 AND a.id = $4), true)`,
		c.OrgID, c.Binding.RouteID, c.Binding.TrunkID, c.AgentID).Scan(&there, &records)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return false, false, fmt.Errorf("route: %w", err)
	}
	return there, records, nil
}
