package dnc

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// A Copy is the newest copy of a registry.
type Copy struct {
	Name, Version      string
	Numbers            int64
	Areas              []string
	Downloaded, Loaded time.Time
}

// Copies returns the newest copies of all registries.
func (s *Catalog) Copies(ctx context.Context) ([]Copy, error) {
	all, err := newestCopies(ctx, s.Pool)
	if err != nil {
		return nil, err
	}
	var copies []Copy
	for _, c := range all {
		copies = append(copies, Copy{c.Name, c.version(), c.Numbers, c.Areas, c.Downloaded, c.Loaded})
	}
	return copies, nil
}

// A LoadRecord is a completed load.
type LoadRecord struct {
	ID             int64
	Name, Org      string // Org is the organization's name, or its ID if it was deleted
	Files          []string
	Replaced       bool
	Added, Deleted int64
	Numbers        int64
	Downloaded     time.Time
	By             string
	At             time.Time
}

// History returns the last loads, the newest first.
func (s *Catalog) History(ctx context.Context, limit int) ([]LoadRecord, error) {
	return db.Collect(ctx, s.Pool, "loads", pgx.RowToStructByPos[LoadRecord], `
		SELECT l.id, l.name, coalesce(o.name, l.org_id), l.files, l.replaced, l.added, l.deleted, l.numbers, l.downloaded_at, l.loaded_by, l.at
		FROM list_loads l LEFT JOIN organizations o ON o.id = l.org_id ORDER BY l.id DESC LIMIT $1`, limit)
}

// A LookupResult is the entry of a number in one registry.
type LookupResult struct {
	Registry, Version string
	Listed, Loaded    bool
}

// Lookup looks a number (E.164) up in the registries of a market.
func (s *Catalog) Lookup(ctx context.Context, market, number string) ([]LookupResult, error) {
	all, err := s.Registries(ctx, s.Pool, market)
	if err != nil {
		return nil, err
	}
	var found []LookupResult
	for _, r := range all {
		listed, loaded := r.Has(number)
		found = append(found, LookupResult{r.Name, r.Version, listed, loaded})
	}
	return found, nil
}
