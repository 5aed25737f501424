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
func allColumns() []column {
	return []column{
		{"status", "State", "", true},
		{"direction", "Direction", "", false},
		{"agent", "Agent", "", true},
		{"campaign", "Campaign", "", false},
		{"from", "Caller number", "nowrap", false},
		{"started", "Started", "", true},
		{"duration", "Duration", "number nowrap", true},
		{"response", "Response p95", "number nowrap", true},
		{slowestColumn, "Slowest response", "number nowrap", false},
		{"cost", "Cost", "number nowrap", true},
		{"score", "Score", "nowrap", true},
		{"tags", "Tags", "", true},
		{"sentiment", "Sentiment", "", false},
		{"recording", "Recording", "", true},
		{"reason", "End reason", "", true},
	}
}

// slowestColumn is the column by which a list may be ordered.
const slowestColumn = "slowest"

// columnsOf returns the columns as the browser has chosen them.
func columnsOf(r *ui.Request) []column {
	all := allColumns()
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
	for _, c := range allColumns() {
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
