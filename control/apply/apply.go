package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/phonenumber"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/control/webhook"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/pipeline/tools"
)

// Options configure Apply.
type Options struct {
	// Prune deletes objects that are missing in the file: agents, trunks and subgroups of the organizations in the
	// file, and organizations that never placed a call.
	Prune bool
	// AllowInsecure allows plain-http webhooks.
	AllowInsecure bool
	// ConcurrentCalls and CallsPerMinute are the limits of a new subgroup if the file sets none; 0 means the defaults
	// of package trunks.
	ConcurrentCalls, CallsPerMinute int
	// Egress restricts the hosts that agents' tools may call.
	Egress safedial.Rules
	// Warn receives warnings about settings that are allowed but not recommended. It may be nil.
	Warn func(text string)
	// CheckTrunk returns an error if no call is possible through a trunk; nil skips the check.
	CheckTrunk func(media.Trunk) error
	// Providers checks the providers of agents; nil skips the check. An agent whose calls would fail is not published.
	Providers agents.ProviderChecker
	// Endpoints receives the endpoints that the database will have, before Providers tests agents. It may be nil.
	Endpoints func(endpoints.Set)

	// Plan receives what Apply would change. If Plan is set, Apply stores nothing, but still tests the providers.
	Plan func([]Change)

	ids map[string]string // IDs of the file's organizations by name, including new organizations
}

// Apply writes the file to the database in one transaction. Applying it twice changes nothing. Before the
// transaction, Apply tests the providers of the agents that the file publishes.
func Apply(ctx context.Context, pool *pgxpool.Pool, s Spec, o Options) error {
	err := s.restore(ctx, pool)
	if err != nil {
		return err
	}
	if o.ids, err = organizationIDs(ctx, pool, s); err != nil {
		return err
	}
	if o.Endpoints != nil {
		after, fault := endpointsAfter(ctx, pool, s, o.ids)
		if fault != nil {
			return fault
		}
		o.Endpoints(after)
	}
	var tested []testedEngines
	if o.Providers != nil {
		if tested, err = probeProviders(ctx, pool, s, o); err != nil {
			return err
		}
	}
	err = db.Tx(ctx, pool, func(tx pgx.Tx) error {
		if o.Plan != nil {
			return plan(ctx, tx, s, o)
		}
		return applyAll(ctx, tx, s, o)
	})
	if errors.Is(err, errPlanned) {
		return nil
	}
	if err != nil {
		return err // the results belong to endpoints that are not stored
	}
	for _, t := range tested {
		o.Providers.Save(ctx, pool, t.orgID, t.engines)
	}
	return nil
}

// errPlanned rolls back the transaction of a plan.
var errPlanned = errors.New("planned")

// plan applies the file, passes the changes to o.Plan, and returns errPlanned.
func plan(ctx context.Context, tx db.Querier, s Spec, o Options) error {
	before, err := Read(ctx, tx)
	if err != nil {
		return err
	}
	if err = applyAll(ctx, tx, s, o); err != nil {
		return err
	}
	after, err := Read(ctx, tx)
	if err != nil {
		return err
	}
	o.Plan(Diff(before, after))
	return errPlanned
}

// WithinTx is like Apply, but uses the caller's transaction and does not test providers. s may come from another source
// than a file.
func WithinTx(ctx context.Context, tx db.Querier, s Spec, o Options) error {
	if err := s.check(); err != nil {
		return err
	}
	return applyAll(ctx, tx, s, o)
}

func applyAll(ctx context.Context, tx db.Querier, s Spec, o Options) error {
	if err := applyProviders(ctx, tx, "", s.Providers); err != nil {
		return err
	}
	var names []string
	// Each step runs for all organizations before the next step, because the borrower of a trunk may precede the lender
	// in the file.
	for _, step := range []func(context.Context, db.Querier, Organization, Options) error{applyOrganization, applyGrants, applyGrantedTrunks} {
		for _, org := range s.Organizations {
			if err := step(ctx, tx, org, o); err != nil {
				return fmt.Errorf("organization %q: %w", org.Name, err)
			}
		}
	}
	for _, org := range s.Organizations {
		names = append(names, org.Name)
	}
	if err := trunks.Notify(ctx, tx); err != nil || !o.Prune {
		return err
	}
	_, err := tx.Exec(ctx, `
		DELETE FROM organizations o WHERE NOT name = ANY ($1)
		AND NOT EXISTS (SELECT FROM calls c WHERE c.org_id = o.id)`, notNull(names))
	return err
}

func applyOrganization(ctx context.Context, tx db.Querier, org Organization, o Options) error {
	id, err := apikeys.EnsureOrganizationAs(ctx, tx, cmp.Or(o.ids[org.Name], control.NewID("org_", time.Now())), org.Name)
	if err != nil {
		return err
	}
	if err = applySettings(ctx, tx, id, org); err != nil {
		return err
	}
	if err = applyOwnProviders(ctx, tx, id, org.Providers, o); err != nil {
		return err
	}
	var agentNames, trunkNames []string
	for _, a := range org.Agents {
		if err = applyAgent(ctx, tx, id, a, o); err != nil {
			return err
		}
		agentNames = append(agentNames, a.Name)
	}
	if org.Webhooks != nil {
		if err = applyWebhooks(ctx, tx, id, *org.Webhooks, o); err != nil {
			return err
		}
	}
	for _, t := range org.Trunks {
		if err = applyTrunk(ctx, tx, id, t, o); err != nil {
			return fmt.Errorf("trunk %q: %w", t.Name, err)
		}
		trunkNames = append(trunkNames, t.Name)
	}
	if !o.Prune {
		return nil
	}
	_, err = tx.Exec(ctx, "DELETE FROM trunks WHERE org_id = $1 AND NOT name = ANY ($2)", id, notNull(trunkNames))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "DELETE FROM agents WHERE org_id = $1 AND NOT name = ANY ($2)", id, notNull(agentNames))
	return err
}

// applySettings writes the settings that the file contains. Other settings stay unchanged.
func applySettings(ctx context.Context, tx db.Querier, id string, org Organization) error {
	given := map[string]any{}
	for key, v := range map[string]struct {
		is    bool
		value any
	}{
		"market":           {org.Market != nil, org.Market},
		"calling_window":   {org.CallingWindow != nil, org.CallingWindow},
		"frequency_caps":   {org.FrequencyCaps != nil, org.FrequencyCaps},
		"require_registry": {org.RequireRegistry != nil, org.RequireRegistry},
		"individual_dnc":   {org.IndividualDNC != nil, org.IndividualDNC},
		"disclosures":      {org.Disclosures != nil, org.Disclosures},
		"retention":        {org.Retention != nil, org.Retention},
		"limits":           {org.Limits != nil, org.Limits},
	} {
		if v.is {
			given[key] = v.value
		}
	}
	_, err := tx.Exec(
		ctx,
		"UPDATE organizations SET settings = settings || $2, timezone = coalesce($3, timezone) WHERE id = $1",
		id,
		given,
		org.Timezone,
	)
	if err != nil || org.Suppression == nil {
		return err
	}
	numbers := []string{}
	for _, n := range *org.Suppression {
		numbers = append(numbers, phonenumber.SuppressionDigits(n))
	}
	_, err = tx.Exec(ctx, `
		DELETE FROM suppressions s WHERE org_id = $1 AND NOT number = ANY ($2)
			AND NOT EXISTS (SELECT FROM opt_outs o WHERE o.org_id = s.org_id AND o.number = s.number) -- the file lists the operator's numbers, and opt-outs stay`, id, numbers)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO suppressions (org_id, number) SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING", id, numbers)
	return err
}

func applyWebhooks(ctx context.Context, tx db.Querier, id string, hooks []Webhook, o Options) error {
	var all []webhook.Endpoint
	for i, h := range hooks {
		e := webhook.Endpoint{
			OrgID:    id,
			URL:      h.URL,
			Secret:   h.Secret,
			Previous: h.Previous,
			Events:   h.Events,
			Thin:     h.Payload == "thin",
			Agents:   h.Agents,
		}
		if e.Events == nil {
			e.Events = webhook.Types()
		}
		err := e.Check(o.AllowInsecure)
		if err == nil && !slices.Contains([]string{"", "full", "thin"}, h.Payload) {
			err = fmt.Errorf("payload %q: use full or thin", h.Payload)
		}
		for _, name := range h.Agents {
			if _, unknown := agents.Find(ctx, tx, id, name); err == nil && unknown != nil {
				err = unknown
			}
		}
		if err != nil {
			return fmt.Errorf("webhooks[%d]: %w", i, err)
		}
		all = append(all, e)
	}
	return webhook.Replace(ctx, tx, id, all)
}

func applyAgent(ctx context.Context, tx db.Querier, id string, a Agent, o Options) error {
	d, err := a.draft(ctx, tx, id)
	if err != nil {
		return err
	}
	if err = tools.Check(d.ToolDefinitions(), o.Egress); err != nil {
		return fmt.Errorf("agent %q: %w", a.Name, err)
	}
	if o.Warn != nil && o.Providers != nil {
		for _, text := range o.Providers.Warnings(id, d) {
			o.Warn(fmt.Sprintf("agent %q: %s", a.Name, text))
		}
	}
	if _, err = agents.Save(ctx, tx, id, a.Name, d); err != nil {
		return err
	}
	switch {
	case a.Published == nil:
		return nil
	case *a.Published:
		if o.Providers != nil {
			if err = o.Providers.Check(ctx, tx, id, d); err != nil {
				return fmt.Errorf("agent %q cannot be published: %w", a.Name, err)
			}
		}
		_, err = agents.Publish(ctx, tx, id, a.Name)
	default:
		err = agents.Unpublish(ctx, tx, id, a.Name)
	}
	return err
}

// applySubgroup writes one subgroup of an organization on a trunk. grantID is the grant under which the trunk is
// borrowed; it is empty if the organization owns the trunk.
func applySubgroup(ctx context.Context, tx db.Querier, id, trunkID, grantID string, s Subgroup, o Options) error {
	have, err := trunks.FindSubgroup(ctx, tx, id, trunkID, s.Name)
	if errors.Is(err, trunks.ErrUnknown) {
		have = trunks.Subgroup{
			ConcurrentCalls: cmp.Or(o.ConcurrentCalls, trunks.DefaultConcurrent),
			CallsPerMinute:  cmp.Or(o.CallsPerMinute, trunks.DefaultPerMinute),
		}
	} else if err != nil {
		return err
	}
	have.OrgID, have.TrunkID, have.GrantID, have.Name = id, trunkID, grantID, s.Name
	setIf(&have.DialPrefix, s.DialPrefix)
	setIf(&have.AllowedDestinations, s.AllowedDestinations)
	setIf(&have.CallerNumbers, s.CallerNumbers)
	setIf(&have.ConcurrentCalls, s.ConcurrentCalls)
	setIf(&have.CallsPerMinute, s.CallsPerMinute)
	if advice := have.DestinationWarning(); advice != "" && o.Warn != nil {
		o.Warn(fmt.Sprintf("subgroup %q: %s", s.Name, advice))
	}
	subgroupID, err := trunks.SaveSubgroup(ctx, tx, have)
	if err != nil || s.Agents == nil {
		return err
	}
	ids := []string{}
	for _, name := range *s.Agents {
		a, err := agents.Find(ctx, tx, id, name)
		if err != nil {
			return err
		}
		ids = append(ids, a.ID)
	}
	return trunks.Attach(ctx, tx, id, subgroupID, ids)
}

func setIf[T any](to, given *T) {
	if given != nil {
		*to = *given
	}
}

func notNull(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
