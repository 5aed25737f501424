package providers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
)

// Channel is the Postgres channel for notifications of changed endpoints.
const Channel = "parley_providers"

// endpointSettings are the settings of an endpoint that are not secret.
type endpointSettings struct {
	Kind        string `json:"kind"`
	URL         string `json:"url,omitempty"`
	Model       string `json:"model,omitempty"`
	APIVersion  string `json:"api_version,omitempty"`
	Region      string `json:"region,omitempty"`
	Folder      string `json:"folder,omitempty"`
	Concurrency int    `json:"concurrency,omitempty"`
}

// unreadable is the kind of a stored endpoint that cannot be read.
const unreadable = "unreadable"

// ReadEndpoints returns the endpoints in the database: those of the operator and of all organizations.
func ReadEndpoints(ctx context.Context, q db.Querier) (endpoints.Set, error) {
	return readEndpoints(ctx, q, "true")
}

func readEndpoints(ctx context.Context, q db.Querier, where string, args ...any) (endpoints.Set, error) {
	s := endpoints.Set{Named: map[string]endpoints.Endpoint{}, Organizations: map[string]map[string]endpoints.Endpoint{}}
	sql := "SELECT coalesce(org_id, ''), name, settings, secret, header_secrets FROM provider_endpoints WHERE " + where
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return s, fmt.Errorf("provider endpoints: %w", err)
	}
	var orgID, name string
	var settings []byte
	var key, headers media.Secret
	_, err = pgx.ForEachRow(rows, []any{&orgID, &name, &settings, &key, &headers}, func() error {
		var is endpointSettings
		var header http.Header
		if json.Unmarshal(settings, &is) != nil || headers != "" && json.Unmarshal([]byte(headers), &header) != nil {
			is, header = endpointSettings{Kind: unreadable}, nil // Endpoint.Check rejects this kind, and ReplaceEndpoints overwrites the endpoint
		}
		e := endpoints.Endpoint{
			Kind: is.Kind, URL: is.URL, Key: key, Header: header, Model: is.Model, APIVersion: is.APIVersion, Region: is.Region,
			Folder: is.Folder, Concurrency: is.Concurrency,
		}
		if orgID == "" {
			s.Named[name] = e
			return nil
		}
		if s.Organizations[orgID] == nil {
			s.Organizations[orgID] = map[string]endpoints.Endpoint{}
		}
		s.Organizations[orgID][name] = e
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("provider endpoints: %w", err)
	}
	return s, nil
}

// ReplaceEndpoints sets all endpoints of an organization, or of the operator if orgID is empty. It deletes the test
// results that the change may affect, and notifies running servers. If nothing changes, it does nothing.
func ReplaceEndpoints(ctx context.Context, q db.Querier, orgID string, all map[string]endpoints.Endpoint) error {
	stored, err := readEndpoints(ctx, q, "coalesce(org_id, '') = $1", orgID)
	if err != nil {
		return err
	}
	have := stored.Named
	if orgID != "" {
		have = stored.Organizations[orgID]
	}
	if maps.EqualFunc(have, all, func(a, b endpoints.Endpoint) bool { return reflect.DeepEqual(a, b) }) {
		return nil
	}
	if _, err = q.Exec(ctx, "DELETE FROM provider_endpoints WHERE coalesce(org_id, '') = $1", orgID); err != nil {
		return fmt.Errorf("provider endpoints: %w", err)
	}
	for name, e := range all {
		if err = insertEndpoint(ctx, q, orgID, name, e); err != nil {
			return fmt.Errorf("provider endpoints: %s: %w", name, err)
		}
	}
	_, err = q.Exec(ctx, "DELETE FROM provider_checks WHERE $1 IN ('', org_id)", orgID)
	if err == nil {
		_, err = q.Exec(ctx, "SELECT pg_notify($1, '')", Channel)
	}
	if err != nil {
		return fmt.Errorf("provider endpoints: %w", err)
	}
	return nil
}

func insertEndpoint(ctx context.Context, q db.Querier, orgID, name string, e endpoints.Endpoint) error {
	var headers media.Secret
	if len(e.Header) > 0 {
		text, err := json.Marshal(e.Header)
		if err != nil {
			return err
		}
		headers = media.Secret(text)
	}
	settings := endpointSettings{e.Kind, e.URL, e.Model, e.APIVersion, e.Region, e.Folder, e.Concurrency}
	_, err := q.Exec(ctx, `
		INSERT INTO provider_endpoints (org_id, name, settings, secret, header_secrets) VALUES (nullif($1, ''), $2, $3, $4, $5)`,
		orgID, name, settings, e.Key, headers)
	return err
}

// Follower updates the endpoints of a server from its settings and the database.
type Follower struct {
	DB db.Querier
	// Settings are the endpoints in the server's own settings. They override the operator's endpoints with the same
	// name in the database.
	Settings endpoints.Set
	// Use receives all endpoints after each change.
	Use func(endpoints.Set)
	// Wake signals that endpoints have changed. It may be nil.
	Wake <-chan struct{}
	Log  *slog.Logger

	current endpoints.Set
	notes   string // text of the last error of Merge
}

// followInterval is the maximum time between two reads.
const followInterval = 30 * time.Second

// Run reads the endpoints repeatedly until ctx ends. It keeps the last endpoints while the database is unavailable.
func (f *Follower) Run(ctx context.Context) {
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.Wake:
		case <-tick.C:
		}
		if err := f.Load(ctx); err != nil && ctx.Err() == nil {
			f.Log.WarnContext(ctx, "failed to read the endpoints of providers; they stay as they are", "err", err)
		}
	}
}

// Load reads the endpoints once.
func (f *Follower) Load(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	stored, err := ReadEndpoints(short, f.DB)
	if err != nil {
		return err
	}
	set, notes := Merge(f.Settings, stored)
	if text := fmt.Sprint(notes); text != f.notes {
		f.notes = text
		if notes != nil {
			f.Log.WarnContext(ctx, "some provider endpoints are not used", "err", notes)
		}
	}
	if reflect.DeepEqual(set, f.current) {
		return nil
	}
	f.current = set
	f.Use(set)
	return nil
}

// Merge returns the endpoints of a server's settings and of the database. It omits an operator's endpoint in the
// database if the endpoint is invalid or the settings have its name. It removes the settings of an organization's
// invalid endpoint. The error lists these endpoints; its text is the same for the same endpoints.
func Merge(settings, stored endpoints.Set) (endpoints.Set, error) {
	all := endpoints.Set{
		Named: map[string]endpoints.Endpoint{}, Organizations: map[string]map[string]endpoints.Endpoint{},
		Fake: settings.Fake,
	}
	var notes []error
	for _, name := range slices.Sorted(maps.Keys(stored.Named)) {
		e := stored.Named[name]
		_, taken := settings.Named[name]
		switch err := cmp.Or(endpoints.CheckName(name), e.Check()); {
		case taken:
			notes = append(notes, fmt.Errorf("%s: the server's settings have an endpoint with this name, which is used instead", name))
		case err != nil:
			notes = append(notes, fmt.Errorf("%s: %w", name, err))
		default:
			all.Named[name] = e
		}
	}
	maps.Copy(all.Named, settings.Named)
	for _, orgID := range slices.Sorted(maps.Keys(stored.Organizations)) {
		own := stored.Organizations[orgID]
		all.Organizations[orgID] = map[string]endpoints.Endpoint{}
		for _, name := range slices.Sorted(maps.Keys(own)) {
			e := own[name]
			if err := cmp.Or(endpoints.CheckName(name), e.Check()); err != nil {
				notes = append(notes, fmt.Errorf("%s of organization %s: %w", name, orgID, err))
				e = endpoints.Endpoint{}
			}
			all.Organizations[orgID][name] = e
		}
	}
	return all, errors.Join(notes...)
}

// Header returns headers in the form of an endpoint; nil if there are none.
func Header(all map[string]media.Secret) http.Header {
	if len(all) == 0 {
		return nil
	}
	h := http.Header{}
	for name, value := range all {
		h.Set(name, string(value))
	}
	return h
}
