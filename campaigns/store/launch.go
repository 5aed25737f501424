package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/control/db"
)

// candidatesPage is the number of contacts that Candidates reads at a time.
const candidatesPage = 50_000

// Candidates returns the contacts of an import in row order and in pages, except those that are suppressed for a reason
// other than a do-not-call list.
func (Imports) Candidates(ctx context.Context, q db.Querier, importID string) iter.Seq2[[]screening.Candidate, error] {
	return func(yield func([]screening.Candidate, error) bool) {
		for last := 0; ; {
			page, err := db.Collect(ctx, q, "contacts", pgx.RowToStructByPos[screening.Candidate], `
				SELECT n, number, name FROM contacts
				WHERE import_id = $1 AND n > $2 AND (state <> 'suppressed' OR reason = 'dnc_suppressed') ORDER BY n LIMIT $3`,
				importID, last, candidatesPage)
			if !yield(page, err) || err != nil || len(page) < candidatesPage {
				return
			}
			last = page[len(page)-1].Row
		}
	}
}

// SuppressListed suppresses the pending contacts with listed numbers at the launch, and returns how many.
func (Contacts) SuppressListed(ctx context.Context, q db.Querier, campaignID string, numbers []string, now time.Time) (int, error) {
	return db.Exec(ctx, q, "contacts", `
		UPDATE contacts SET state = 'suppressed', reason = 'dnc_suppressed', dnc_at_launch = true, updated_at = $3
		WHERE campaign_id = $1 AND state = 'pending' AND number = ANY ($2)`, campaignID, numbers, now)
}

// SaveAudit records a screening with the registry versions, and returns the ID of the record.
func (Imports) SaveAudit(
	ctx context.Context, q db.Querier, c campaigns.Campaign, x screening.Screen, copies []string, rules string,
) (int64, error) {
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

// textVersion is the version of the attested text.
const textVersion = "2026-11"

// An Attestation records that an actor confirmed the consent of contacts.
type Attestation struct {
	ID, OrgID, CampaignID, ImportID string
	KeyID, Actor                    string
	Tier, Classification            string
	IP, UserAgent                   string
	Contacts                        []byte // SHA-256 of the numbers
	Fingerprint                     string // fingerprint of the screening
	At                              time.Time
}

// SaveAttestation stores an attestation permanently.
func (s *Store) SaveAttestation(ctx context.Context, q db.Querier, a Attestation) error {
	_, err := db.Exec(ctx, q, "attestation", `
		INSERT INTO attestations (id, org_id, campaign_id, import_id, api_key_id, actor, consent_tier, classification, text_version,
			ip, user_agent, contacts, fingerprint, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		a.ID, a.OrgID, a.CampaignID, a.ImportID, a.KeyID, a.Actor, a.Tier, a.Classification, textVersion,
		a.IP, a.UserAgent, a.Contacts, a.Fingerprint, a.At)
	return err
}

// HasAttestedBatch reports whether the campaign accepted an import other than its launch import. The consent of the contacts
// of such an import was attested when it was added.
func (s *Store) HasAttestedBatch(ctx context.Context, q db.Querier, c campaigns.Campaign) (bool, error) {
	var found bool
	err := q.QueryRow(ctx, "SELECT EXISTS (SELECT FROM imports WHERE campaign_id = $1 AND id <> $2 AND status = 'accepted')",
		c.ID, c.LaunchImportID).Scan(&found)
	return found, db.Wrap(err, "import")
}

// Route reports whether the subgroup of a campaign exists, and whether the campaign's agent records calls.
func (s *Store) Route(ctx context.Context, q db.Querier, c campaigns.Campaign) (exists, records bool, err error) {
	err = q.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM subgroups WHERE org_id = $1 AND id = $2 AND trunk_id = $3),
			coalesce((SELECT (v.definition ->> 'recording')::boolean FROM agents a
				JOIN agent_versions v ON v.agent_id = a.id AND v.version = a.published_version
				WHERE a.org_id = $1 AND a.id = $4), true)`,
		c.OrgID, c.Binding.RouteID, c.Binding.TrunkID, c.AgentID).Scan(&exists, &records)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return false, false, fmt.Errorf("route: %w", err)
	}
	return exists, records, nil
}
