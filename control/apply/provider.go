package apply

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/net/http/httpguts"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/safedial"
)

// Provider is an endpoint of a provider.
type Provider struct {
	Name        string                  `yaml:"name"`
	Kind        string                  `yaml:"kind"`
	URL         string                  `yaml:"url"`
	Key         media.Secret            `yaml:"key"`
	Headers     map[string]media.Secret `yaml:"headers"`
	Model       string                  `yaml:"model"`
	APIVersion  string                  `yaml:"api_version"`
	Region      string                  `yaml:"region"`
	Folder      string                  `yaml:"folder"`
	Concurrency int                     `yaml:"concurrency"`
}

// Limits of the number of endpoints.
const (
	maxProviders    = 200 // of the operator
	maxOrgProviders = 50  // of an organization
)

// maxConcurrency is the highest limit of concurrent requests to an endpoint.
const maxConcurrency = 100_000

func (p Provider) endpoint() endpoints.Endpoint {
	return endpoints.Endpoint{
		Kind: p.Kind, URL: p.URL, Key: p.Key, Header: providers.Header(p.Headers), Model: p.Model, APIVersion: p.APIVersion,
		Region: p.Region, Folder: p.Folder, Concurrency: p.Concurrency,
	}
}

// Endpoints returns the endpoints of a list by name.
func Endpoints(all []Provider) map[string]endpoints.Endpoint {
	named := map[string]endpoints.Endpoint{}
	for _, p := range all {
		named[p.Name] = p.endpoint()
	}
	return named
}

// checkProviders validates endpoints without the database. at is the path of the list in the file.
func checkProviders(at string, all *[]Provider, limit int) error {
	if all == nil {
		return nil
	}
	if len(*all) > limit {
		return fmt.Errorf("%s: %d endpoints; at most %d are accepted", at, len(*all), limit)
	}
	var names []string
	for i, p := range *all {
		here := fmt.Sprintf("%s[%d]", at, i)
		if err := checkName(here, p.Name, &names); err != nil {
			return err
		}
		if err := endpoints.CheckName(p.Name); err != nil {
			return fmt.Errorf("%s.name: %w", here, err)
		}
		if err := p.check(); err != nil {
			return fmt.Errorf("%s (%s): %w", here, p.Name, err)
		}
	}
	return nil
}

func (p Provider) check() error {
	for name, value := range p.Headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(string(value)) {
			return fmt.Errorf("headers: %q is not a valid header", name) // the value may be secret
		}
	}
	if len(p.endpoint().Header) < len(p.Headers) {
		return errors.New("headers: two names differ only in upper and lower case")
	}
	if strings.Contains(p.URL, "?") { // the URL is stored unencrypted, and a query may contain a key
		return errors.New("url: a query is not accepted; set the key or headers")
	}
	if !httpguts.ValidHeaderFieldValue(string(p.Key)) {
		return errors.New("key: contains a line break or another control character")
	}
	if p.Concurrency < 0 || p.Concurrency > maxConcurrency {
		return fmt.Errorf("concurrency: %d; accepted: 1 to %d, or 0 for no limit", p.Concurrency, maxConcurrency)
	}
	return p.endpoint().Check()
}

// checkEgress returns an error if the URL of an organization's endpoint does not use TLS, unless the operator allows
// its host.
func (p Provider) checkEgress(egress safedial.Rules) error {
	u, err := url.Parse(p.URL)
	if err != nil {
		return errors.New("url: not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "ws" { // Endpoint.Check accepts no other scheme without TLS
		return nil
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	if egress.Anywhere || egress.Allows(u.Hostname(), port) {
		return nil
	}
	return fmt.Errorf("url: an organization may use http and ws only for hosts in PARLEY_TOOL_HOSTS: use https or wss, or add %s to it",
		net.JoinHostPort(u.Hostname(), port))
}

func applyProviders(ctx context.Context, tx db.Querier, orgID string, all *[]Provider) error {
	if all == nil {
		return nil
	}
	return providers.ReplaceEndpoints(ctx, tx, orgID, Endpoints(*all))
}

func applyOwnProviders(ctx context.Context, tx db.Querier, orgID string, all *[]Provider, o Options) error {
	if all == nil {
		return nil
	}
	for i, p := range *all {
		if err := p.checkEgress(o.Egress); err != nil {
			return fmt.Errorf("providers[%d] (%s): %w", i, p.Name, err)
		}
	}
	return applyProviders(ctx, tx, orgID, all)
}

// endpointsAfter returns the endpoints that the database will have after the file is applied. ids contains the IDs of
// the file's organizations by name.
func endpointsAfter(ctx context.Context, q db.Querier, s Spec, ids map[string]string) (endpoints.Set, error) {
	set, err := providers.ReadEndpoints(ctx, q)
	if err != nil {
		return set, err
	}
	if s.Providers != nil {
		set.Named = Endpoints(*s.Providers)
	}
	for _, org := range s.Organizations {
		if org.Providers != nil {
			set.Organizations[ids[org.Name]] = Endpoints(*org.Providers)
		}
	}
	return set, nil
}

// organizationIDs returns the IDs of the file's organizations by name. Organizations that do not exist get new IDs.
func organizationIDs(ctx context.Context, pool *pgxpool.Pool, s Spec) (map[string]string, error) {
	ids := map[string]string{}
	for _, org := range s.Organizations {
		id, err := apikeys.FindOrganization(ctx, pool, org.Name)
		if errors.Is(err, apikeys.ErrUnknown) {
			id, err = control.NewID("org_", time.Now()), nil
		}
		if err != nil {
			return nil, err
		}
		ids[org.Name] = id
	}
	return ids, nil
}
