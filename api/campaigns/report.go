package campaigns

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"

	"github.com/parley-voice/parley/campaigns/report"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
)

func kind(format string) string {
	if format == report.XLSX {
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	}
	return "text/csv; charset=utf-8"
}

// Report answers GET /v1/imports/{id}/report.
func (c *Campaigns) Report(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	q, id := r.URL.Query(), r.PathValue("id")
	format, only := report.CSV, q.Get("only")
	if q.Has("format") {
		format = q.Get("format")
	}
	switch {
	case format != report.CSV && format != report.XLSX:
		return control.Refuse(control.CodeReportFormat, "format must be csv or xlsx")
	case q.Has("only") && only != "dnc_match":
		return control.Refuse(control.CodeReportFilter, "only must be dnc_match or omitted")
	case !importID.MatchString(id):
		return store.ImportNotFound()
	}
	// The report is first written to a file, because it may be large and errors may occur late.
	f, err := os.CreateTemp("", "parley-report-*")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }() // the file is temporary
	err = c.Service.Report(r.Context(), key.OrgID, id, only != "", func() (report.Table, error) { return report.New(format, f) })
	if err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", kind(format))
	w.Header().Set("Content-Disposition", `attachment; filename="`+id+"."+format+`"`)
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(w, f) // the client may have left
	return nil
}
