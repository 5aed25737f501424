// Package service implements the operations on campaigns: create, launch, pause,
// resume, cancel, and their status.
package service

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/db"
)

// Markets returns the given version of a market package, or the built-in package if version is empty; nil if code is
// empty.
type Markets interface {
	Package(ctx context.Context, q db.Querier, code, version string) (*market.Package, error)
}

// A RegistryLister returns the do-not-call registries of a market.
type RegistryLister func(ctx context.Context, q db.Querier, market string) ([]screening.Registry, error)

// A Service performs operations on campaigns. It is safe for concurrent use.
type Service struct {
	Pool    *pgxpool.Pool
	Store   *store.Store
	Bucket  store.Bucket // stores the original rows of imports
	Markets Markets
	// Registries returns the current registries; nil means none.
	Registries   RegistryLister
	MaxRows      int           // rows of a campaign; 0 means 50,000
	MaxFileRows  int           // rows of a file; 0 means 200,000
	MaxCalls     int           // calls of a batch; 0 means 1,000
	MaxAddresses int           // addresses of a withdrawal; 0 means 1,000
	Horizon      time.Duration // maximum time until the end of a campaign that accepts further calls; 0 means 30 days
	// CanRecord reports whether this node can record the calls of an agent now. It
	// returns true for agents without recording. nil means always.
	CanRecord func(ctx context.Context, agentID string, version int) (bool, error)
	// CheckAgent reports whether calls can be made with an agent; nil means always.
	CheckAgent AgentChecker
	// RecheckAgent requests a test of the providers of an agent; nil does nothing.
	RecheckAgent func(ctx context.Context, agentID string, version int)
	// Now is the clock; nil uses the clock of the database.
	Now func() time.Time

	offset  atomic.Int64 // nanoseconds by which the database's clock was ahead of this node's at the last query
	gc      GCLimiter
	screens screening.Cache // screenings of drafts
}

// An AgentChecker returns what is known of an agent's providers, without requests to them.
type AgentChecker func(ctx context.Context, q db.Querier, orgID, agentID string, version int) (AgentState, error)

// An AgentState describes whether calls can be made with an agent. Its zero value means that
// they can.
type AgentState struct {
	NoProvider error    // the agent names a provider that no node has
	Refused    error    // the providers refuse the agent's settings
	Warnings   []string // failures that may pass, or that a fallback covers
}

// largeList is the number of rows from which a list is read with GCLimiter.
const largeList = 10_000

// Default limits of a request.
const (
	defaultMaxRows      = 50_000
	defaultMaxFileRows  = 200_000
	defaultMaxCalls     = 1_000
	defaultMaxAddresses = 1_000
)

// An Actor is the author of a request, as the log stores it.
type Actor struct {
	Via       campaigns.Via
	KeyID     string
	Actor     string
	IP, Agent string // IP address and User-Agent of the request
}

func (w Actor) entry(action, detail string, at time.Time) store.LogEntry {
	return store.LogEntry{Action: action, Via: w.Via, KeyID: w.KeyID, Actor: w.Actor, Detail: detail, At: at}
}

// A Status is a campaign with its import, screening, launch checks and counts.
type Status struct {
	Campaign campaigns.Campaign
	Import   *ImportStatus // nil for a campaign without a list
	Screen   screening.Screen
	Blockers []launchcheck.Blocker
	Warnings []launchcheck.Warning
	Counts   campaigns.Counts // counts of the campaign's contacts
	// Stale reports that the list or the do-not-call data changed since the screening.
	Stale bool
}

// An ImportStatus is an import with its first issues and its screening.
type ImportStatus struct {
	campaigns.Import
	Issues  []contactfile.Issue
	ByCode  map[string]int
	Total   int
	Screen  screening.Screen
	Matches []screening.Match
	Stale   bool // see Status.Stale
}

// A BlockedError is returned when launch checks block a launch or a resume.
type BlockedError struct{ Blockers []launchcheck.Blocker }

// Error implements error.
func (b *BlockedError) Error() string {
	return fmt.Sprintf("the launch checks found %d blockers", len(b.Blockers))
}

// A DraftKeptError is a refusal that occurred after the campaign was written. The campaign stays a draft.
type DraftKeptError struct{ Err error }

// Error implements error.
func (k *DraftKeptError) Error() string { return k.Err.Error() }

// Unwrap returns the refusal.
func (k *DraftKeptError) Unwrap() error { return k.Err }

func (svc *Service) importFiles() *store.ImportFiles {
	return &store.ImportFiles{Pool: svc.Pool, Bucket: svc.Bucket}
}

// now estimates the time of the database without a query.
func (svc *Service) now() time.Time {
	if svc.Now != nil {
		return svc.Now()
	}
	return time.Now().Add(time.Duration(svc.offset.Load()))
}

// clock returns the time of the database, so that all nodes start and end campaigns by
// one clock. It updates the offset that now uses.
func (svc *Service) clock(ctx context.Context, q db.Querier) (now time.Time, err error) {
	if svc.Now != nil {
		return svc.Now().UTC().Truncate(time.Microsecond), nil
	}
	if err = q.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err == nil {
		svc.offset.Store(int64(time.Until(now)))
	}
	return now.UTC(), err
}

// anyDue reports whether a campaign is due. It does what clock does in the same statement.
func (svc *Service) anyDue(ctx context.Context) (bool, error) {
	if svc.Now != nil {
		_, due, err := svc.Store.AnyDue(ctx, svc.Pool, svc.Now())
		return due, err
	}
	now, due, err := svc.Store.AnyDue(ctx, svc.Pool, time.Time{})
	if err == nil {
		svc.offset.Store(int64(time.Until(now)))
	}
	return due, err
}

// rules returns an organization and its market package, nil if it has none.
func (svc *Service) rules(ctx context.Context, q db.Querier, orgID string) (store.Organization, *market.Package, error) {
	org, err := svc.Store.Organization(ctx, q, orgID)
	if err != nil {
		return org, nil, err
	}
	pkg, err := svc.Markets.Package(ctx, q, org.Market, org.Rules)
	return org, pkg, err
}

func (svc *Service) screener() screener {
	return screener{store: svc.Store, registries: svc.Registries, cache: &svc.screens}
}
