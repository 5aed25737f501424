package calls

import (
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
)

// A column of the list. The number is always shown.
type column struct {
	Key, Label string
	Class      string
	On         bool
}

// columnCookie stores the chosen columns in the browser.
const columnCookie = "parley_call_columns"

// allColumns returns the columns in order. On is the default.
func allColumns(texts *ui.Texts) []column {
	all := []column{
		{Key: "status", On: true},
		{Key: "direction"},
		{Key: "agent", On: true},
		{Key: "campaign"},
		{Key: "from", Class: "nowrap"},
		{Key: "started", On: true},
		{Key: "duration", Class: "number nowrap", On: true},
		{Key: "response", Class: "number nowrap", On: true},
		{Key: slowestColumn, Class: "number nowrap"},
		{Key: "cost", Class: "number nowrap", On: true},
		{Key: "score", Class: "nowrap", On: true},
		{Key: "tags", On: true},
		{Key: "sentiment"},
		{Key: "recording", On: true},
		{Key: "reason", On: true},
	}
	for i := range all {
		all[i].Label = texts.Label("calls.column", all[i].Key)
	}
	return all
}

// slowestColumn is the column by which a list may be ordered.
const slowestColumn = "slowest"

// columnsOf returns the columns as the browser has chosen them.
func columnsOf(r *ui.Request) []column {
	all := allColumns(r.Texts)
	cookie, err := r.HTTP.Cookie(columnCookie)
	if err != nil {
		return all
	}
	chosen := strings.Split(cookie.Value, ".")
	for i := range all {
		all[i].On = slices.Contains(chosen, all[i].Key)
	}
	return all
}

func chooseColumns(r *ui.Request) (ui.Result, error) {
	var keys []string
	for _, c := range allColumns(r.Texts) {
		if slices.Contains(r.All("column"), c.Key) {
			keys = append(keys, c.Key)
		}
	}
	r.SetCookie(columnCookie, strings.Join(keys, "."), 365*24*time.Hour)
	to := "calls"
	if back := r.Text("filters"); strings.HasPrefix(back, "?") {
		to += back
	}
	return ui.Result{To: to}, nil
}
