package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"go.yaml.in/yaml/v3"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/control/webhook"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
)

// maxSuppression is the largest suppression list that Read returns. It leaves out a longer one.
const maxSuppression = 10_000

// Read returns everything that Apply writes, in the form of the file. It contains secrets.
func Read(ctx context.Context, q db.Querier) (Spec, error) {
	set, err := providers.ReadEndpoints(ctx, q)
	if err != nil {
		return Spec{}, err
	}
	names, err := apikeys.OrganizationNames(ctx, q)
	if err != nil {
		return Spec{}, err
	}
	s := Spec{Providers: fromEndpoints(set.Named)}
	for _, id := range slices.SortedFunc(maps.Keys(names), func(a, b string) int { return strings.Compare(names[a], names[b]) }) {
		o, err := readOrganization(ctx, q, id)
		if err != nil {
			return s, fmt.Errorf("organization %q: %w", names[id], err)
		}
		o.Providers = fromEndpoints(set.Organizations[id])
		s.Organizations = append(s.Organizations, o)
	}
	return s, nil
}

func readOrganization(ctx context.Context, q db.Querier, id string) (Organization, error) {
	o, err := Current(ctx, q, id)
	if err != nil {
		return o, err
	}
	numbers, err := db.Collect(ctx, q, "suppressions", pgx.RowTo[string], `
		SELECT '+' || number FROM suppressions s WHERE org_id = $1
			AND NOT EXISTS (SELECT FROM opt_outs o WHERE o.org_id = s.org_id AND o.number = s.number) ORDER BY number LIMIT $2`, id, maxSuppression+1)
	if err != nil {
		return o, err
	}
	if len(numbers) <= maxSuppression {
		o.Suppression = &numbers
	}
	hooks, err := webhook.Endpoints(ctx, q, id)
	if err != nil {
		return o, err
	}
	o.Webhooks = &[]Webhook{}
	for _, e := range hooks {
		h := Webhook{URL: e.URL, Secret: e.Secret, Previous: e.Previous, Events: e.Events, Agents: e.Agents}
		if e.Thin {
			h.Payload = "thin"
		}
		*o.Webhooks = append(*o.Webhooks, h)
	}
	if err = o.readAgents(ctx, q, id); err != nil {
		return o, err
	}
	return o, o.readTrunks(ctx, q, id)
}

func (o *Organization) readAgents(ctx context.Context, q db.Querier, id string) error {
	all, err := agents.List(ctx, q, id)
	if err != nil {
		return err
	}
	for _, s := range all {
		a, err := agents.ByID(ctx, q, id, s.ID)
		if err != nil {
			return err
		}
		w := WithSecrets(a)
		if s.Published == 0 || s.Published == s.Newest && !s.Changed { // else the file could only publish the draft
			w.Published = new(s.Published > 0)
		}
		o.Agents = append(o.Agents, w)
	}
	return nil
}

func (o *Organization) readTrunks(ctx context.Context, q db.Querier, id string) error {
	all, err := trunks.List(ctx, q, id)
	if err != nil {
		return err
	}
	routes, err := trunks.Routes(ctx, q, id, "")
	if err != nil {
		return err
	}
	subgroups, lent := map[string][]Subgroup{}, map[[2]string][]Subgroup{}
	for _, r := range routes {
		s := Subgroup{
			Name: r.Name, DialPrefix: &r.DialPrefix, AllowedDestinations: &r.AllowedDestinations, CallerNumbers: &r.CallerNumbers,
			Agents: &r.Agents, ConcurrentCalls: &r.ConcurrentCalls, CallsPerMinute: &r.CallsPerMinute,
		}
		if r.Lender == "" {
			subgroups[r.TrunkID] = append(subgroups[r.TrunkID], s)
		} else {
			lent[[2]string{r.TrunkName, r.Lender}] = append(lent[[2]string{r.TrunkName, r.Lender}], s)
		}
	}
	for _, t := range all {
		o.Trunks = append(o.Trunks, fromTrunk(t, subgroups[t.ID]))
	}
	grants, err := trunks.ListGrants(ctx, q, id)
	if err != nil {
		return err
	}
	o.Grants, o.GrantedTrunks = &[]Grant{}, &[]GrantedTrunk{}
	for _, g := range grants {
		if g.Lender == o.Name {
			*o.Grants = append(*o.Grants, Grant{g.TrunkName, g.Borrower, g.CallerNumbers, g.ConcurrentCalls, g.CallsPerMinute})
		} else if some := lent[[2]string{g.TrunkName, g.Lender}]; some != nil {
			*o.GrantedTrunks = append(*o.GrantedTrunks, GrantedTrunk{g.TrunkName, g.Lender, some})
		}
	}
	return nil
}

func fromTrunk(t trunks.Trunk, subgroups []Subgroup) Trunk {
	s := t.Settings
	w := Trunk{
		Name: t.Name, Proxy: &t.Proxy, Username: &t.Username, CallerNumbers: &t.CallerNumbers, Subgroups: subgroups,
		Backups: &s.Backups, Realm: &s.Realm, SignalingSources: &s.SignalingSources, Register: &s.Register, Codecs: &s.Codecs,
		Encryption: &s.Encryption, DTMF: &s.DTMF, NumberFormat: &s.NumberFormat, AssertedIdentity: &s.AssertedIdentity, Privacy: &s.Privacy,
		Diversion: &s.Diversion,
		Headers:   &s.Headers, Attest: &s.Attest, MediaSources: &s.MediaSources, FirstMediaTimeout: &s.FirstMediaTimeout,
		MediaTimeout: &s.MediaTimeout, Provider: &s.Provider, Rates: &s.Rates,
	}
	if t.Password != "" {
		w.Password = &t.Password
	}
	if t.CallsPerSecond != 0 || t.ConcurrentCalls != 0 {
		w.Limits = &Limits{&t.CallsPerSecond, &t.ConcurrentCalls}
	}
	return w
}

func fromEndpoints(all map[string]endpoints.Endpoint) *[]Provider {
	if len(all) == 0 {
		return nil
	}
	list := []Provider{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e := all[name]
		p := Provider{
			Name: name, Kind: e.Kind, URL: e.URL, Key: e.Key, Model: e.Model, APIVersion: e.APIVersion, Region: e.Region, Folder: e.Folder,
			Concurrency: e.Concurrency,
		}
		for header, values := range e.Header {
			if p.Headers == nil {
				p.Headers = map[string]media.Secret{}
			}
			p.Headers[header] = media.Secret(strings.Join(values, ","))
		}
		list = append(list, p)
	}
	return &list
}

// exportHead begins an exported file.
const exportHead = `# Written by parley export. "[secret]" stands for a stored secret: parley apply keeps it in the same database.
# For another database, enter the secret.
`

// Write writes a file with HiddenSecret in place of each secret, and without empty values.
func (s Spec) Write(out io.Writer) error {
	var n yaml.Node
	if err := n.Encode(s); err != nil {
		return err
	}
	dropEmptySecrets(&n, plainOf(s))
	prune(&n)
	if _, err := io.WriteString(out, exportHead); err != nil {
		return err
	}
	e := yaml.NewEncoder(out)
	e.SetIndent(2)
	return errors.Join(e.Encode(&n), e.Close())
}

// dropEmptySecrets removes the secrets of n that are empty in the plain value v. A Secret is written as HiddenSecret even
// if it is empty.
func dropEmptySecrets(n *yaml.Node, v any) {
	object, _ := v.(map[string]any)
	list, _ := v.([]any)
	var kept []*yaml.Node
	for i, item := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode && i < len(list):
			dropEmptySecrets(item, list[i])
		case n.Kind == yaml.MappingNode && i%2 == 0 && (n.Content[i+1].Value != HiddenSecret || object[item.Value] != nil):
			dropEmptySecrets(n.Content[i+1], object[item.Value])
			kept = append(kept, item, n.Content[i+1])
		}
	}
	if n.Kind == yaml.MappingNode {
		n.Content = kept
	}
}

// restore replaces each HiddenSecret in the file by the stored secret of the same object.
func (s Spec) restore(ctx context.Context, q db.Querier) error {
	if !s.hidesSecret() {
		return nil
	}
	stored, err := Read(ctx, q)
	if err != nil {
		return err
	}
	if err = restoreProviders(s.Providers, stored.Providers); err != nil {
		return err
	}
	for _, o := range s.Organizations {
		var was Organization
		if i := slices.IndexFunc(stored.Organizations, func(x Organization) bool { return x.Name == o.Name }); i >= 0 {
			was = stored.Organizations[i]
		}
		if err = o.restore(was); err != nil {
			return fmt.Errorf("organization %q: %w", o.Name, err)
		}
	}
	return nil
}

// hidesSecret reports whether a secret of the file is HiddenSecret.
func (s Spec) hidesSecret() bool { return slices.Contains(secrets(plainOf(s)), HiddenSecret) }

func (o Organization) restore(was Organization) error {
	if err := restoreProviders(o.Providers, was.Providers); err != nil {
		return err
	}
	for i := range deref(o.Webhooks) {
		h := &(*o.Webhooks)[i]
		var old Webhook
		if n := slices.IndexFunc(deref(was.Webhooks), func(x Webhook) bool { return x.URL == h.URL }); n >= 0 {
			old = (*was.Webhooks)[n]
		}
		if err := errors.Join(keep(&h.Secret, old.Secret), keep(&h.Previous, old.Previous)); err != nil {
			return fmt.Errorf("webhooks[%d]: %w", i, err)
		}
	}
	for _, t := range o.Trunks {
		if t.Password == nil {
			continue
		}
		old := new(media.Secret)
		n := slices.IndexFunc(was.Trunks, func(x Trunk) bool { return x.Name == t.Name })
		if n >= 0 && was.Trunks[n].Password != nil && (t.Proxy == nil || *t.Proxy == *was.Trunks[n].Proxy) {
			old = was.Trunks[n].Password
		}
		if err := keep(t.Password, *old); err != nil {
			return fmt.Errorf("trunk %q: password: %w", t.Name, err)
		}
	}
	for i := range o.Agents {
		a := &o.Agents[i]
		before := agents.Definition{}
		if n := slices.IndexFunc(was.Agents, func(x Agent) bool { return x.Name == a.Name }); n >= 0 {
			was.Agents[n].applyTo(&before)
		}
		if err := a.RestoreSecrets(before); err != nil {
			return fmt.Errorf("agent %q: %w", a.Name, err)
		}
	}
	return nil
}

func restoreProviders(given, was *[]Provider) error {
	for i, p := range deref(given) {
		var old Provider
		n := slices.IndexFunc(deref(was), func(x Provider) bool { return x.Name == p.Name && x.Kind == p.Kind && x.URL == p.URL })
		if n >= 0 {
			old = (*was)[n]
		}
		if err := keep(&(*given)[i].Key, old.Key); err != nil {
			return fmt.Errorf("providers[%d] (%s): %w", i, p.Name, err)
		}
		for name, value := range p.Headers {
			if err := keep(&value, old.Headers[name]); err != nil {
				return fmt.Errorf("providers[%d] (%s): headers.%s: %w", i, p.Name, name, err)
			}
			p.Headers[name] = value
		}
	}
	return nil
}

// keep replaces HiddenSecret by the stored secret.
func keep(given *media.Secret, stored media.Secret) error {
	switch {
	case *given != HiddenSecret:
	case stored == "":
		return errors.New("no secret is stored for this object and address: enter the secret")
	default:
		*given = stored
	}
	return nil
}

func deref[T any](list *[]T) []T {
	if list == nil {
		return nil
	}
	return *list
}
