package command

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"
)

// Campaign holds the commands of campaigns.
type Campaign struct {
	Create      CreateCampaign      `cmd:"" help:"Create a campaign with a file of rows, at a running server."`
	Disclosures CampaignDisclosures `cmd:"" help:"Say what the law wants said at the beginning of a campaign's calls, or not."`
}

// CreateCampaign creates a campaign.
type CreateCampaign struct {
	File string `short:"f" required:"" help:"The rows: .xlsx or .csv, with a line of names." type:"path" placeholder:"FILE"`
	Spec string `help:"The campaign, in YAML or JSON, as POST /v1/campaigns takes it; flags win." type:"path" placeholder:"FILE"`

	Name            string    `help:"Name of the campaign."`
	Agent           string    `help:"Name of the agent."`
	Pace            int       `help:"Calls a minute: 1, 2, 5, 10, 20, 30, 60, 100 or 200."`
	Timezone        string    `help:"IANA name; else the organization's."`
	StartsAt        time.Time `help:"When to begin; else now." placeholder:"2006-01-02T15:04:05Z"`
	EndsAt          time.Time `help:"When to end." placeholder:"2006-01-02T15:04:05Z"`
	Classification  string    `help:"marketing, servicing or debt_collection."`
	Duplicates      string    `help:"What to do with rows of one number: reject, keep_first or keep_last."`
	DNC             string    `name:"dnc" help:"What to do with numbers on a do-not-call list: block or skip."`
	ContactTimezone bool      `help:"Call each contact in the zone of its row."`
	Attempts        int       `help:"Dials of a contact, 1 to 10."`
	Trunk           string    `help:"Id of the trunk."`
	Route           string    `help:"Id of the subgroup."`
	From            string    `help:"The number to show."`
	Attest          bool      `help:"You confirm that the contacts consented to these calls; without it the campaign stays a draft."`

	URL    string `name:"url" help:"Where the server is; else PARLEY_API_URL, else this configuration's address." placeholder:"URL"`
	Report string `help:"File to write the report of all rows to (CSV)." type:"path" placeholder:"FILE"`
	Again  bool   `help:"Create it even if the same was created in the last day; else that one is shown."`
}

// spec is the body of the request, without rows.
func (c CreateCampaign) spec() (map[string]any, error) {
	spec := map[string]any{}
	if c.Spec != "" {
		text, err := os.ReadFile(c.Spec)
		if err != nil {
			return nil, err
		}
		if err = yaml.Unmarshal(text, &spec); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Spec, err)
		}
	}
	put := func(key string, is bool, value any) {
		if is {
			spec[key] = value
		}
	}
	put("name", c.Name != "", c.Name)
	put("agent_id", c.Agent != "", c.Agent)
	put("calls_per_minute", c.Pace != 0, c.Pace)
	put("timezone", c.Timezone != "", c.Timezone)
	put("starts_at", !c.StartsAt.IsZero(), c.StartsAt.Unix())
	put("ends_at", !c.EndsAt.IsZero(), c.EndsAt.Unix())
	put("classification", c.Classification != "", c.Classification)
	put("duplicate_action", c.Duplicates != "", c.Duplicates)
	put("dnc", c.DNC != "", c.DNC)
	put("use_contact_timezone", c.ContactTimezone, true)
	put("retry_config", c.Attempts != 0, map[string]any{"attempts": c.Attempts})
	put("trunk_id", c.Trunk != "", c.Trunk)
	put("route_id", c.Route != "", c.Route)
	put("from_number", c.From != "", c.From)
	put("attestation", c.Attest, map[string]any{"confirmed": true})
	put("name", spec["name"] == nil, filepath.Base(c.File))
	return spec, nil
}

// Run creates the campaign.
func (c CreateCampaign) Run(ctx context.Context, client *Client) error {
	if c.URL != "" {
		client.URL = c.URL
	}
	spec, err := c.spec()
	if err != nil {
		return err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	key, err := c.key(text, file)
	if err != nil {
		return err
	}
	body, replayed, err := client.upload(ctx, text, file, key)
	if err != nil {
		return err
	}
	var made created
	if err = json.Unmarshal(body, &made); err != nil {
		return fmt.Errorf("the server's answer: %w", err)
	}
	if replayed {
		fmt.Fprintln(client.Errs, "the same was asked for in the last day: this is the campaign of then; --again makes another")
	}
	made.print(client)
	if c.Report == "" || made.Import == nil {
		return nil
	}
	return client.save(ctx, "/v1/imports/"+made.Import.ID+"/report?format=csv", c.Report)
}

// key is the Idempotency-Key: the same for the same campaign with the same file,
// so that a command that was cut off can be given again.
func (c CreateCampaign) key(spec []byte, file io.ReadSeeker) (string, error) {
	if c.Again {
		return "parley-" + rand.Text(), nil
	}
	h := sha256.New()
	_, err := h.Write(spec)
	if err == nil {
		_, err = io.Copy(h, file)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	return "parley-" + hex.EncodeToString(h.Sum(nil)), err
}

// A created campaign is what is shown of the answer.
type created struct {
	ID       string `json:"campaign_id"`
	Name     string `json:"name"`
	Status   string `json:"status"`
	Blockers []note `json:"blockers"`
	Warnings []note `json:"warnings"`
	Import   *struct {
		ID         string `json:"import_id"`
		RowsSeen   int    `json:"rows_seen"`
		Accepted   int    `json:"accepted"`
		Warned     int    `json:"warned"`
		Rejected   int    `json:"rejected"`
		Duplicates int    `json:"duplicates_found"`
		Matched    int    `json:"dnc_matched"`
		Issues     struct {
			Total  int            `json:"total"`
			ByCode map[string]int `json:"by_code"`
			Items  []issue        `json:"items"`
		} `json:"issues"`
	} `json:"import"`
}

// A note is a blocker or a warning.
type note struct {
	Code    string `json:"code"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

// An issue is something wrong with a row.
type issue struct {
	Row      int    `json:"row"`
	Column   string `json:"column"`
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Value    string `json:"value"`
	Message  string `json:"message"`
}

// print shows what came of the campaign: its id on standard output, and what
// people read beside it.
func (m created) print(t *Client) {
	fmt.Fprintln(t.Out, m.ID)
	w := t.notes()
	fmt.Fprintf(w, "%s is %s\n", m.Name, m.Status)
	if i := m.Import; i != nil {
		fmt.Fprintf(w, "%d rows: %d accepted (%d with a warning), %d rejected, %d repeat a number, %d on a do-not-call list\n",
			i.RowsSeen, i.Accepted, i.Warned, i.Rejected, i.Duplicates, i.Matched)
		for _, x := range i.Issues.Items {
			fmt.Fprintf(w, "  row %d\t%s\t%s\t%q\t%s\n", x.Row, x.Column, x.Code, x.Value, x.Message)
		}
		if n := i.Issues.Total - len(i.Issues.Items); n > 0 {
			fmt.Fprintf(w, "  and %d more; all of them: --report FILE, or GET /v1/imports/%s/report\n", n, i.ID)
		}
	}
	for _, b := range m.Blockers {
		fmt.Fprintf(w, "keeps it from dialling:\t%s\t%s\t%s\n", b.Code, b.Field, b.Message)
	}
	for _, b := range m.Warnings {
		fmt.Fprintf(w, "to know:\t%s\t%s\t%s\n", b.Code, b.Field, b.Message)
	}
	_ = w.Flush() // to a terminal
}

// save writes what a path answers to a file.
func (c *Client) save(ctx context.Context, path, name string) (err error) {
	resp, err := c.do(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // the operator's own path
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}
