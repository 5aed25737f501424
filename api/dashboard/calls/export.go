package calls

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/control/store"
)

// Limits of an export. A server makes maxExports of them at a time, one for each operator. The last line has lastLineTime
// before the end of exportTimeout.
const (
	exportPage    = 500
	exportMost    = 50_000
	exportTimeout = 2 * time.Minute
	lastLineTime  = 5 * time.Second
	maxExports    = 2
)

// exporters are the operators whose exports run.
type exporters struct {
	mu  sync.Mutex
	all map[string]bool
}

// begin reports whether an operator may export now; end must follow.
func (e *exporters) begin(email string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all[email] || len(e.all) >= maxExports {
		return false
	}
	e.all[email] = true
	return true
}

func (e *exporters) end(email string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.all, email)
}

// export sends the calls of the search as CSV, page by page. The last line says so if calls are missing.
func (c *Calls) export(r *ui.Request) error {
	chosen, err := readSearch(r)
	if err != nil {
		return err
	}
	if !c.exports.begin(r.Session.Email) {
		return &ui.ProblemError{
			Status: http.StatusServiceUnavailable, Title: r.Texts.T("calls.export.title"),
			Text: r.Texts.T("calls.export.text"),
		}
	}
	defer c.exports.end(r.Session.Email)
	ctx, stop := boundExport(r.Context(), r.Writer)
	defer stop()
	chosen.query.Del("cursor")
	narrow := func(f *store.Filter) {
		chosen.apply(f)
		f.Limit = exportPage
	}
	found, next, err := c.API.Find(ctx, r.Org(), chosen.query, narrow)
	if err != nil {
		return err
	}
	name := time.Now().In(r.Zone()).Format("calls-2006-01-02-1504.csv")
	r.Writer.Header().Set("Content-Type", "text/csv; charset=utf-8")
	r.Writer.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	if r.HTTP.Method == http.MethodHead {
		return nil
	}
	_, _ = io.WriteString(r.Writer, "\ufeff") // makes spreadsheet programs read UTF-8; a failure shows at the next flush
	w := csv.NewWriter(r.Writer)
	err = w.Write(exportHead())
	for n := 0; err == nil; {
		if err = c.exportRows(ctx, r, w, found.Calls); err != nil || next == "" {
			break
		}
		if n += len(found.Calls); n >= exportMost {
			err = w.Write([]string{r.Texts.T("calls.export.too_many", "count", n)})
			break
		}
		chosen.query.Set("cursor", next)
		found, next, err = c.API.Find(ctx, r.Org(), chosen.query, narrow)
	}
	if err != nil { // the response has begun, so its last line has to say it
		_ = w.Write([]string{r.Texts.T("calls.export.failed")})
	}
	w.Flush()
	return nil
}

// boundExport returns the context in which an export reads calls. It ends before ctx, so that the last line can still be
// written. No write to w outlives ctx.
func boundExport(ctx context.Context, w http.ResponseWriter) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(deadline) // a connection without deadlines is that of a test
	return context.WithDeadline(ctx, deadline.Add(-lastLineTime))
}

func exportHead() []string {
	return []string{
		"call_id", "created", "dialed", "answered", "ended", "direction", "number", "caller_number", "name", "agent", "campaign_id",
		"status", "disconnection_reason", "answered_by", "duration_s",
		"response_p95_ms", "cost", "currency", "score", "tags", "sentiment", "recording",
		"response_slowest_ms",
	}
}

func (c *Calls) exportRows(ctx context.Context, r *ui.Request, w *csv.Writer, all []control.Call) error {
	shown, err := c.rows(ctx, r.Texts, all, "")
	if err != nil {
		return err
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.In(r.Zone()).Format(time.RFC3339)
	}
	number := func(v float64, digits int) string {
		if v == 0 {
			return ""
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	// A spreadsheet would take the sign for a formula.
	digits := func(number string) string { return strings.TrimPrefix(number, "+") }
	for i, x := range all {
		if err = ctx.Err(); err != nil {
			return err
		}
		s := shown[i]
		cost, currency := exactCost(x)
		line := []string{
			x.ID, at(x.CreatedAt), at(x.DialedAt), at(x.AnsweredAt), at(x.EndedAt), s.Direction(),
			digits(x.To), digits(x.From), x.Name, x.AgentName, x.CampaignID,
			string(x.Status), string(x.Reason), x.AnsweredBy, number(s.Took.Seconds(), 1), number(s.Response, 0), cost, currency,
			number(float64(s.Score), 0), strings.Join(s.Tags, "; "), s.Sentiment,
			string(x.RecordingStatus), number(float64(s.Slowest), 0),
		}
		for n, cell := range line {
			line[n] = ui.CSVText(cell)
		}
		if err = w.Write(line); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// exactCost returns the cost of a call; empty if it is unknown.
func exactCost(c control.Call) (amount, currency string) {
	var cost pricing.Cost
	if len(c.Cost) == 0 || json.Unmarshal(c.Cost, &cost) != nil {
		return "", ""
	}
	return cost.Amount.String(), cost.Currency
}
