package simulate

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/parley-voice/parley/campaigns"
)

// Files of a simulation.
const (
	RowsFile      = "rows.csv"
	CampaignsFile = "campaigns.json"
	LogFile       = "log.csv"
)

// A log writes one line per event: the epoch in milliseconds, the event, its contact or
// campaign, and details.
//
//	1795222586123,dial,CONTACT,NUMBER OF THE ATTEMPT
//	1795222586123,end,CONTACT,OUTCOME      agent_error: answered, failed before a conversation
//	1795222586123,state,CONTACT,STATE,REASON
//	1795222586123,status,CAMPAIGN,STATUS
type log struct {
	w   *bufio.Writer
	buf []byte
}

func (l *log) line(at time.Time, event, id string, details ...string) {
	l.buf = strconv.AppendInt(l.buf[:0], at.UnixMilli(), 10)
	for _, s := range append([]string{event, id}, details...) {
		l.buf = append(append(l.buf, ','), s...)
	}
	_, _ = l.w.Write(append(l.buf, '\n')) // Flush returns the error
}

func (l *log) dial(at time.Time, contact, attempt int) {
	l.line(at, "dial", strconv.Itoa(contact), strconv.Itoa(attempt))
}

func (l *log) end(at time.Time, contact int, outcome string) {
	l.line(at, "end", strconv.Itoa(contact), outcome)
}

func (l *log) state(at time.Time, contact int, s campaigns.State, reason string) {
	l.line(at, "state", strconv.Itoa(contact), string(s), reason)
}

func (l *log) status(at time.Time, campaign string, s campaigns.Status) {
	l.line(at, "status", campaign, string(s))
}

func save(dir string, all []Campaign, rows []Row) error {
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	if err = os.WriteFile(filepath.Join(dir, CampaignsFile), text, 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, RowsFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // own folder
	if err != nil {
		return err
	}
	return closeFile(f, writeRows(f, rows))
}

// Columns returns the columns of RowsFile.
func Columns() []string {
	return []string{"contact", "campaign", "phone", "state", "timezone", "priority", "not_before", "not_after", "listed", "withdrawn"}
}

func writeRows(to io.Writer, rows []Row) error {
	w := csv.NewWriter(to)
	_ = w.Write(Columns()) // Error returns the error
	for _, r := range rows {
		_ = w.Write([]string{
			strconv.Itoa(r.Contact), fmt.Sprintf("cmp_%03d", r.Campaign), r.Number, r.State, r.Timezone, strconv.Itoa(r.Priority),
			formatEpoch(r.NotBefore), formatEpoch(r.NotAfter), formatEpoch(r.Listed), formatEpoch(r.Withdrawn),
		})
	}
	w.Flush()
	return w.Error()
}

func formatEpoch(epoch int64) string {
	if epoch == 0 {
		return ""
	}
	return strconv.FormatInt(epoch, 10)
}

// closeFile closes a file that was written to.
func closeFile(f *os.File, err error) error {
	if fault := f.Close(); err == nil {
		err = fault
	}
	return err
}
