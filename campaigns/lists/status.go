package lists

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Copy is the newest copy of a registry.
type Copy struct {
	Name, Version      string
	Numbers            int64
	Areas              []string
	Downloaded, Loaded time.Time
}

// Copies are the newest copies of all registries.
func (s *Shelf) Copies(ctx context.Context) ([]Copy, error) {
	all, err := newest(ctx, s.Pool)
	if err != nil {
		return nil, err
	}
	var shown []Copy
	for _, c := range all {
		shown = append(shown, Copy{c.Name, c.version(), c.Numbers, c.Areas, c.Downloaded, c.Loaded})
	}
	return shown, nil
}

// A Past load is one that was done.
type Past struct {
	Name, Org      string // Org is the name of an organization, or its id where it is gone
	Files          []string
	Replaced       bool
	Added, Deleted int64
	Numbers        int64
	Downloaded     time.Time
	By             string
	At             time.Time
}

// History lists the last loads, the newest first.
func (s *Shelf) History(ctx context.Context, limit int) ([]Past, error) {
	rows, err := s.Pool.Query(ctx, `
		SELECT l.name, coalesce(o.name, l.org_id), l.files, l.replaced, l.added, l.deleted, l.numbers, l.downloaded_at, l.loaded_by, l.at
		FROM list_loads l LEFT JOIN organizations o ON o.id = l.org_id ORDER BY l.id DESC LIMIT $1`, limit)
	if err != nil {
		return nil, fmt.Errorf("loads: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Past])
	if err != nil {
		return nil, fmt.Errorf("loads: %w", err)
	}
	return all, nil
}

// A Look is what one registry says of a number.
type Look struct {
	Registry, Version string
	Listed, Loaded    bool
}

// Look tells what the registries of a market say of a number (E.164).
func (s *Shelf) Look(ctx context.Context, market, number string) ([]Look, error) {
	all, err := s.Registries(ctx, s.Pool, market)
	if err != nil {
		return nil, err
	}
	var shown []Look
	for _, r := range all {
		listed, loaded := r.Has(number)
		shown = append(shown, Look{r.Name, r.Version, listed, loaded})
	}
	return shown, nil
}
