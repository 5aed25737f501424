// Package oracle checks the files of a simulation: the campaigns, the rows and the log. It shares no code with the
// planner. It is slow and simple: for every call it reads the tables of the law line by line and compares the
// callee's local time.
package oracle

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// A Report is the result of the oracle.
type Report struct {
	Dials      int `json:"dials"`
	Unlawful   int `json:"outside_a_legal_window"`
	Hours      int `json:"outside_working_hours"`
	OverCap    int `json:"over_a_cap"`
	Forbidden  int `json:"to_a_suppressed_number"`
	NotRunning int `json:"of_a_campaign_that_does_not_run"`
	Doubled    int `json:"doubled"`
	TooMany    int `json:"attempts_too_many"`
	TooFast    int `json:"faster_than_the_pace"`
	Lost       int `json:"contacts_lost"`

	Terminal int `json:"contacts_terminal"` // done, exhausted or suppressed
	Closed   int `json:"contacts_of_closed_campaigns"`
	Waiting  int `json:"contacts_waiting_at_the_end"`

	// Findings describes the first faults.
	Findings []string `json:"findings"`
	// ByHour counts calls by market and the earliest possible local hour at the callee.
	ByHour map[string][24]int `json:"by_local_hour"`
}

// Wrong counts the faults.
func (r *Report) Wrong() int {
	return r.Unlawful + r.Hours + r.OverCap + r.Forbidden + r.NotRunning + r.Doubled + r.TooMany + r.TooFast + r.Lost
}

// maxFindings bounds the described faults.
const maxFindings = 20

func (r *Report) addFault(counter *int, format string, args ...any) {
	*counter++
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
	}
}

// A campaign is one entry of campaigns.json.
type campaign struct {
	ID             string
	Org            int
	Market         string
	Classification string
	Timezone       string
	ContactZone    bool  `json:"use_contact_timezone"`
	StartsAt       int64 `json:"starts_at"`
	EndsAt         int64 `json:"ends_at"`
	PerMinute      int   `json:"calls_per_minute"`
	Attempts       int
	Hours          [7][2]string
	Window         [2]string
	OrgZone        string `json:"org_timezone"`
	Daily          *int
	CapsOff        bool `json:"caps_off"`

	status string
	dials  []int64 // times of the last few dials, ms
}

// A row is one line of rows.csv, with its state according to the log.
type row struct {
	campaign               string
	phone, state, timezone string
	notBefore, notAfter    int64
	listed                 int64

	dials  int
	onCall bool
	broke  bool   // the last call broke by a fault of the service
	last   int64  // end of the last call, ms
	final  string // final state
}

// A number has the calls of an organization to it.
type number struct {
	dials  []int64 // times of the dials, ms
	talked int64   // end of the last conversation, ms
	active int
	listed int64 // start of the do-not-call entry, s
}

type judge struct {
	Report
	laws      map[string]*law
	campaigns map[string]*campaign
	rows      []row
	numbers   map[string]*number // numbers by organization and phone
}

// Judge checks the files of a simulation in a folder. laws has the files of each market
// by code and name.
func Judge(dir string, laws map[string]map[string]string) (Report, error) {
	j := &judge{laws: map[string]*law{}, campaigns: map[string]*campaign{}, numbers: map[string]*number{}}
	j.ByHour = map[string][24]int{}
	for code, files := range laws {
		var err error
		if j.laws[code], err = readLaw(code, files); err != nil {
			return Report{}, fmt.Errorf("law of %s: %w", code, err)
		}
	}
	if err := j.readCampaigns(filepath.Join(dir, "campaigns.json")); err != nil {
		return Report{}, err
	}
	if err := each(filepath.Join(dir, "rows.csv"), true, j.readRow); err != nil {
		return Report{}, err
	}
	if err := each(filepath.Join(dir, "log.csv"), false, j.readEvent); err != nil {
		return Report{}, err
	}
	j.end()
	return j.Report, nil
}

func (j *judge) readCampaigns(path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // the folder of the simulation
	if err != nil {
		return err
	}
	var all []*campaign
	if err = json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, c := range all {
		j.campaigns[c.ID] = c
	}
	return nil
}

// each calls do for the lines of a CSV file.
func each(path string, hasHeader bool, do func([]string) error) error {
	f, err := os.Open(path) //nolint:gosec // the folder of the simulation
	if err != nil {
		return err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	for n := 0; ; n++ {
		line, err := r.Read()
		if err == io.EOF { //nolint:errorlint // csv returns io.EOF itself
			return nil
		}
		if err == nil && (n > 0 || !hasHeader) {
			err = do(line)
		}
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", path, n+1, err)
		}
	}
}

func (j *judge) readRow(cells []string) error {
	r := row{campaign: cells[1], phone: cells[2], state: cells[3], timezone: cells[4]}
	for i, to := range map[int]*int64{6: &r.notBefore, 7: &r.notAfter, 8: &r.listed} {
		if cells[i] == "" {
			continue
		}
		var err error
		if *to, err = strconv.ParseInt(cells[i], 10, 64); err != nil {
			return err
		}
	}
	if cells[0] != strconv.Itoa(len(j.rows)) || j.campaigns[r.campaign] == nil {
		return fmt.Errorf("row %s of campaign %s is out of order, or the campaign is unknown", cells[0], r.campaign)
	}
	j.rows = append(j.rows, r)
	if n := j.number(&r); r.listed != 0 && (n.listed == 0 || r.listed < n.listed) {
		n.listed = r.listed
	}
	return nil
}

func (j *judge) number(r *row) *number {
	key := strconv.Itoa(j.campaigns[r.campaign].Org) + " " + r.phone
	n := j.numbers[key]
	if n == nil {
		n = &number{}
		j.numbers[key] = n
	}
	return n
}

// end counts the final states of the contacts.
func (j *judge) end() {
	for i := range j.rows {
		r := &j.rows[i]
		c := j.campaigns[r.campaign]
		over := c.status == "completed" || c.status == "cancelled"
		switch {
		case r.final != "":
			j.Terminal++
		case over && c.status == "completed" && c.EndsAt == 0:
			j.addFault(&j.Lost, "contact %d waits in %s, which is completed", i, c.ID)
		case over:
			j.Closed++
		default:
			j.Waiting++
		}
	}
}
