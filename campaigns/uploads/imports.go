package uploads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
)

// Limits of background imports.
const (
	workers   = 2 // concurrent imports per node; an organization has one at a time
	maxQueued = 5 // per organization; Add refuses more
	maxTries  = 3 // tries per import; a try fails by an internal error or a crash of its node
	leaseFor  = 30 * time.Second
	pollEvery = 2 * time.Second
	beatEvery = 500 * time.Millisecond // progress is stored, and the lease extended
	retention = "7 days"               // how long an import is kept after its end
)

// Channel is the notification channel for queued imports.
const Channel = "parley_list_imports"

// ErrQueueFull is returned while an organization has the maximum of open imports.
var ErrQueueFull = errors.New("5 lists are being imported: wait until one is finished")

// States of an import.
const (
	Queued  = "queued"
	Running = "running"
	Done    = "done"
	Failed  = "failed"
)

// An Import creates a campaign from an upload in the background.
type Import struct {
	ID, OrgID, Upload string
	Columns           map[string]string // mapping of the columns; see service.File.Columns
	Spec              campaigns.Spec
	Who               service.Actor
	Actor             operator.Actor // operator, for the audit log
	Form              string         // URL query of the form that queued the import, for a link back to it

	State         string
	Stage         string // "reading", "writing" or "checking"
	Rows, AllRows int    // rows written so far, and in all; 0 while unknown
	CampaignID    string // ID of the created campaign
	Code, Message string // code of a refusal

	try int
}

// Percent estimates the progress, 0 to 100.
func (i Import) Percent() int {
	const reading, writing = 10, 60
	switch {
	case i.State == Done:
		return 100
	case i.Stage == "writing" && i.AllRows > 0:
		return reading + writing*i.Rows/(2*i.AllRows) // each row is written as a row and as a contact
	case i.Stage == "checking":
		return reading + writing
	case i.Stage == "reading" && i.Rows > 0:
		return reading / 2
	default:
		return 0
	}
}

// Imports creates campaigns in the background. It is safe for concurrent use.
type Imports struct {
	Pool    *pgxpool.Pool
	Service *service.Service
	Uploads *Uploads
	// Admit limits the lists that are read at once; nil disables the limit.
	Admit func(orgID string) (done func(), err error)
	Wake  <-chan struct{} // receives a value when an import is queued; nil means polling only
	Log   *slog.Logger
}

// requester is the stored author of an import.
type requester struct {
	Who   service.Actor
	Actor operator.Actor
}

// AddWith queues an import and calls onAdded in the same transaction.
func (m *Imports) AddWith(ctx context.Context, i Import, onAdded func(ctx context.Context, q db.Querier, id string) error) error {
	return db.Tx(ctx, m.Pool, func(tx pgx.Tx) error {
		id, err := m.Add(ctx, tx, i)
		if err != nil {
			return err
		}
		return onAdded(ctx, tx, id)
	})
}

// Add queues an import and returns its id.
func (m *Imports) Add(ctx context.Context, q db.Querier, i Import) (id string, err error) {
	var open int
	const count = "SELECT count(*) FROM list_imports WHERE org_id = $1 AND state IN ('queued', 'running')"
	if err = q.QueryRow(ctx, count, i.OrgID).Scan(&open); err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	if open >= maxQueued {
		return "", ErrQueueFull
	}
	id = control.NewID("lim_", time.Now())
	const insert = "INSERT INTO list_imports (id, org_id, upload_id, columns, spec, who, form) VALUES ($1, $2, $3, $4, $5, $6, $7)"
	if _, err = db.Exec(ctx, q, "import", insert, id, i.OrgID, i.Upload, i.Columns, i.Spec, requester{i.Who, i.Actor}, i.Form); err != nil {
		return "", err
	}
	_, err = db.Exec(ctx, q, "notify", "SELECT pg_notify($1, '')", Channel)
	return id, err
}

const importColumns = "id, org_id, upload_id, columns, spec, who, form, state, stage, rows_done, rows_all, " +
	"campaign_id, code, message, tries"

func scanImport(row pgx.Row) (i Import, err error) {
	var who, spec, columns []byte
	err = row.Scan(&i.ID, &i.OrgID, &i.Upload, &columns, &spec, &who, &i.Form, &i.State, &i.Stage,
		&i.Rows, &i.AllRows, &i.CampaignID, &i.Code, &i.Message, &i.try)
	if err != nil {
		return i, err
	}
	var by requester
	err = errors.Join(json.Unmarshal(who, &by), json.Unmarshal(spec, &i.Spec), json.Unmarshal(columns, &i.Columns))
	i.Who, i.Actor = by.Who, by.Actor
	return i, err
}

// Find returns an import of an organization, or ErrGone.
func (m *Imports) Find(ctx context.Context, q db.Querier, orgID, id string) (Import, error) {
	i, err := scanImport(q.QueryRow(ctx, "SELECT "+importColumns+" FROM list_imports WHERE org_id = $1 AND id = $2", orgID, id))
	if errors.Is(err, pgx.ErrNoRows) {
		return Import{}, ErrGone
	}
	return i, err
}

// Run processes the queue until ctx ends. Any number of nodes may run it. If a node stops, any node starts its
// imports again.
func (m *Imports) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for range workers {
		all.Go(func() {
			tick := time.NewTicker(pollEvery)
			defer tick.Stop()
			for ctx.Err() == nil {
				found, err := m.Next(ctx)
				if err != nil && ctx.Err() == nil {
					m.Log.WarnContext(ctx, "failed to import a list", "err", err)
				}
				if found && err == nil {
					continue
				}
				select {
				case <-m.Wake:
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
}

// Next processes one due import and reports whether there was one.
func (m *Imports) Next(ctx context.Context) (found bool, err error) {
	i, err := m.claim(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err = m.process(ctx, i); errors.Is(err, errBusy) {
		return false, nil
	}
	return true, err
}

// dueSQL reports whether claim may find work; it costs one read.
const dueSQL = `SELECT EXISTS (SELECT FROM list_imports WHERE state = 'queued' OR state = 'running' AND lease_until < clock_timestamp()
	OR state IN ('done', 'failed') AND done_at < now() - interval '` + retention + `')`

// claim takes the next due import; pgx.ErrNoRows if there is none.
func (m *Imports) claim(ctx context.Context) (i Import, err error) {
	var due bool
	if err = m.Pool.QueryRow(ctx, dueSQL).Scan(&due); err != nil {
		return i, err
	}
	if !due {
		return i, pgx.ErrNoRows
	}
	err = db.Tx(ctx, m.Pool, func(tx pgx.Tx) (fault error) {
		if _, fault = tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('list imports', 0))"); fault != nil {
			return fault
		}
		const prune = "DELETE FROM list_imports WHERE state IN ('done', 'failed') AND done_at < now() - interval '" + retention + "'"
		if _, fault = tx.Exec(ctx, prune); fault != nil {
			return fault
		}
		i, fault = scanImport(tx.QueryRow(ctx, `
			UPDATE list_imports SET state = 'running', tries = tries + 1, lease_until = clock_timestamp() + $1::interval, stage = 'reading', rows_done = 0, rows_all = 0
			WHERE id = (SELECT id FROM list_imports j
				WHERE (state = 'queued' OR state = 'running' AND lease_until < clock_timestamp())
				AND NOT EXISTS (SELECT FROM list_imports o WHERE o.org_id = j.org_id AND o.state = 'running' AND o.lease_until >= clock_timestamp())
				ORDER BY created_at, id LIMIT 1)
			RETURNING `+importColumns, leaseFor))
		return fault
	})
	return i, err
}

// A tracker has the progress of an import: create writes it, heartbeat reads it.
type tracker struct {
	stage     atomic.Value
	done, all atomic.Int64
}

func (p *tracker) set(stage string, done, all int) {
	p.stage.Store(stage)
	p.done.Store(int64(done))
	p.all.Store(int64(all))
}

// process processes one import. The transaction that creates the campaign also writes the end of the import.
func (m *Imports) process(ctx context.Context, i Import) error {
	if i.try > maxTries {
		return m.fail(ctx, i, "", "the server stopped during the import")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var p tracker
	p.set("reading", 0, 0)
	var heartbeat sync.WaitGroup
	defer heartbeat.Wait()
	defer cancel()
	heartbeat.Go(func() { m.heartbeat(ctx, cancel, i, &p) })
	err := m.create(ctx, i, &p)
	var refused *control.Error
	switch draft := (&service.DraftKeptError{}); {
	case err == nil, errors.As(err, &draft):
		return m.Uploads.Drop(context.WithoutCancel(ctx), i.OrgID, i.Upload)
	case errors.Is(err, errBusy):
		if fault := m.requeue(context.WithoutCancel(ctx), i); fault != nil {
			return fault
		}
		return errBusy
	case ctx.Err() != nil:
		return m.requeue(context.WithoutCancel(ctx), i)
	case errors.As(err, &refused):
		return m.fail(ctx, i, string(refused.Code), refused.Error())
	case errors.Is(err, contactfile.ErrFile), errors.Is(err, ErrGone):
		return m.fail(ctx, i, "", err.Error())
	case i.try == maxTries:
		return errors.Join(err, m.fail(ctx, i, string(control.CodeInternal), "internal error during the import"))
	default: // the import is tried again when the lease expires
		return err
	}
}

// errBusy is returned while Admit refuses.
var errBusy = errors.New("too many lists are being read")

func (m *Imports) create(ctx context.Context, i Import, p *tracker) error {
	if m.Admit != nil {
		release, err := m.Admit(i.OrgID)
		if err != nil {
			return errBusy
		}
		defer release()
	}
	f, closeFile, err := m.Uploads.Open(ctx, i.OrgID, i.Upload)
	if err != nil {
		return err
	}
	defer closeFile()
	f.Columns = i.Columns
	_, err = m.Service.Create(ctx, i.OrgID, i.Who, service.CreateRequest{Spec: i.Spec, File: f, Progress: p.set},
		func(ctx context.Context, q db.Querier, st service.Status) error {
			k := st.Campaign
			after := map[string]any{
				"name": k.Name, "agent": k.AgentName, "calls_per_minute": k.CallsPerMinute, "classification": k.Classification, "status": k.Status,
			}
			if st.Import != nil {
				after["rows"], after["accepted"] = st.Import.RowsSeen, st.Import.AcceptedRows
			}
			return m.end(ctx, q, i, Import{State: Done, CampaignID: k.ID}, after)
		},
		func(ctx context.Context, q db.Querier, cause error) error {
			return m.end(ctx, q, i, Import{State: Done, Code: string(control.CodeOf(cause)), Message: cause.Error()},
				map[string]any{"name": i.Spec.Name, "list": "not taken"})
		})
	return err
}

// errFenced is returned after another node has taken over the import.
var errFenced = errors.New("another node has taken over the import")

// end writes the end of an import and, if after is not nil, an audit log entry.
func (m *Imports) end(ctx context.Context, q db.Querier, i, as Import, after map[string]any) error {
	n, err := db.Exec(ctx, q, "import", `
		UPDATE list_imports SET state = $3, campaign_id = $4, code = $5, message = $6, lease_until = NULL, done_at = now()
		WHERE id = $1 AND tries = $2 AND state = 'running'`, i.ID, i.try, as.State, as.CampaignID, as.Code, as.Message)
	if err == nil && n == 0 {
		err = errFenced
	}
	if err != nil || after == nil {
		return err
	}
	return operator.Log(ctx, q, i.Actor, operator.Entry{Action: "campaign.create", Object: as.CampaignID, After: after})
}

func (m *Imports) fail(ctx context.Context, i Import, code, message string) error {
	return m.end(ctx, m.Pool, i, Import{State: Failed, Code: code, Message: message}, nil)
}

// requeue returns an import to the queue, because the import could not start or this node stops.
func (m *Imports) requeue(ctx context.Context, i Import) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	const requeue = "UPDATE list_imports SET state = 'queued', tries = tries - 1, stage = '', lease_until = NULL " +
		"WHERE id = $1 AND tries = $2 AND state = 'running'"
	_, err := m.Pool.Exec(ctx, requeue, i.ID, i.try)
	return err
}

// heartbeat extends the lease and stores the progress until ctx ends. It calls cancel if another node has taken over
// the import.
func (m *Imports) heartbeat(ctx context.Context, cancel func(), i Import, p *tracker) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		tag, err := m.Pool.Exec(ctx, `
			UPDATE list_imports SET lease_until = clock_timestamp() + $3::interval, stage = $4, rows_done = $5, rows_all = $6 WHERE id = $1 AND tries = $2 AND state = 'running'`,
			i.ID, i.try, leaseFor, p.stage.Load(), p.done.Load(), p.all.Load())
		if err == nil && tag.RowsAffected() == 0 {
			cancel()
			return
		}
	}
}
