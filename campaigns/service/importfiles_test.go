package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/db"
)

// TestAllListed checks that with the decision skip, a campaign whose contacts are all on a do-not-call list is not
// launched, at creation or later.
func TestAllListed(t *testing.T) {
	o := newOrganization(t)
	o.exec(t, "INSERT INTO suppressions (org_id, number) VALUES ($1, '12125550101'), ($1, '12125550102')", o.org)
	blocked := func(all []launchcheck.Blocker) bool {
		return slices.ContainsFunc(all, func(b launchcheck.Blocker) bool { return b.Code == launchcheck.AllContactsSuppressed })
	}
	st, err := o.create(campaigns.Spec{DNC: campaigns.Skip}, true, "2125550101", "2125550102", "4165550103")
	if err != nil || st.Campaign.Status != campaigns.Draft || !blocked(st.Blockers) {
		t.Fatalf("%s %v, %v", st.Campaign.Status, st.Blockers, err)
	}
	st, err = o.create(campaigns.Spec{}, true, "2125550101", "2125550102")
	if err != nil || blocked(st.Blockers) {
		t.Fatalf("with the decision to block: %v, %v", st.Blockers, err)
	}
	_, err = o.Launch(o.ctx, o.org, st.Campaign.ID, testActor(), service.LaunchRequest{Confirmed: true, ImportID: st.Import.ID, DNC: campaigns.Skip})
	var refused *service.BlockedError
	if !errors.As(err, &refused) || !blocked(refused.Blockers) {
		t.Fatalf("launched: %v", err)
	}
	if st, err = o.create(campaigns.Spec{DNC: campaigns.Skip}, true, "2125550101", "2125550109"); err != nil || st.Campaign.Status != campaigns.Running {
		t.Fatalf("one of two is listed: %s %v, %v", st.Campaign.Status, st.Blockers, err)
	}
}

// A listingBucket reports its keys.
type listingBucket struct {
	mu   sync.Mutex
	keys []string
	full bool
}

func (c *listingBucket) Put(_ context.Context, key string, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keys = append(c.keys, key); c.full {
		return errors.New("the bucket is full; part of the file is stored")
	}
	return err
}

func (c *listingBucket) Delete(_ context.Context, key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = slices.DeleteFunc(c.keys, func(k string) bool { return k == key })
	return nil
}

// TestUnusedFilesAreDeleted checks that the stored rows of a failed request are deleted after a while. Those of other
// requests are kept until their campaign is deleted.
func TestUnusedFilesAreDeleted(t *testing.T) {
	o := newOrganization(t)
	c := &listingBucket{}
	o.Bucket = c
	files := &store.ImportFiles{Pool: o.db.Pool, Bucket: c}
	good := o.mustCreate(t, campaigns.Spec{}, false, "2125550101")
	gone := errors.New("the client is gone")
	_, err := o.Create(o.ctx, o.org, testActor(), service.CreateRequest{Spec: campaigns.Spec{Name: "x", Agent: "sales", CallsPerMinute: 20}, Rows: rowsOf("2125550102")},
		func(context.Context, db.Querier, service.Status) error { return gone }, nil)
	if !errors.Is(err, gone) {
		t.Fatal(err)
	}
	c.full = true
	if _, err = o.create(campaigns.Spec{}, false, "2125550103"); err == nil {
		t.Fatal("no error from a full bucket")
	}
	wantKeys := func(after time.Duration, want ...string) {
		t.Helper()
		o.exec(t, "UPDATE source_files SET at = at - $1::interval", fmt.Sprint(after))
		if err = files.Sweep(o.ctx); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.keys, want) {
			t.Errorf("after %s: %q, want %q", after, c.keys, want)
		}
	}
	all := slices.Clone(c.keys)
	if len(all) != 3 {
		t.Fatal(all)
	}
	wantKeys(time.Minute, all...) // the request may still be running
	wantKeys(2*time.Hour, good.Import.SourceKey)
	o.exec(t, "DELETE FROM campaigns WHERE id = $1", good.Campaign.ID)
	wantKeys(2 * time.Hour)
	// The tallies of a campaign are deleted with it.
	if tallies, err := o.column("SELECT state FROM contact_tallies WHERE campaign_id = $1 UNION ALL SELECT outcome FROM attempt_tallies WHERE campaign_id = $1", good.Campaign.ID); err != nil || len(tallies) > 0 {
		t.Errorf("tallies of %q, %v", tallies, err)
	}
}

// TestLargeListTimeout checks that writing a large list may take longer than other statements.
func TestLargeListTimeout(t *testing.T) {
	o := newOrganization(t)
	for n, want := range map[int]string{1: "30s", 10_001: "5min"} {
		var got string
		phones := make([]string, n)
		for i := range phones {
			phones[i] = fmt.Sprintf("212%07d", 2_000_000+i)
		}
		_, err := o.Create(o.ctx, o.org, testActor(), service.CreateRequest{Spec: campaigns.Spec{Name: "x", Agent: "sales", CallsPerMinute: 20}, Rows: rowsOf(phones...)},
			func(ctx context.Context, q db.Querier, _ service.Status) error {
				return q.QueryRow(ctx, "SELECT current_setting('statement_timeout')").Scan(&got)
			}, nil)
		if err != nil || got != want {
			t.Errorf("%d rows: %q, %v; want %q", n, got, err, want)
		}
	}
}
