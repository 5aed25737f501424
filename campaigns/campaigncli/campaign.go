package campaigncli

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

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/admincli"
)

// Campaign has the commands of campaigns.
type Campaign struct {
	Create      CreateCampaign      `cmd:"" help:"Create a campaign from a contact file on a running server."`
	List        ListCampaigns       `cmd:"" help:"List campaigns, newest first."`
	Show        ShowCampaign        `cmd:"" help:"Show a campaign and its progress."`
	Pause       PauseCampaign       `cmd:"" help:"Pause a campaign or all running ones. Active calls continue."`
	Resume      ResumeCampaign      `cmd:"" help:"Resume a paused campaign."`
	Cancel      CancelCampaign      `cmd:"" help:"Cancel a campaign permanently. Active calls continue."`
	Reopen      CampaignReopen      `cmd:"" help:"Call contacts again whose last attempt failed because of Parley or a provider."`
	Disclosures CampaignDisclosures `cmd:"" help:"Enable or disable the required disclosures of a campaign."`
}

// CreateCampaign creates a campaign.
type CreateCampaign struct {
	File string `short:"f" required:"" help:"Contact file, .xlsx or .csv, with a header line." type:"path" placeholder:"FILE"`
	Spec string `help:"Campaign in YAML or JSON, as in POST /v1/campaigns; flags override it." type:"path" placeholder:"FILE"`

	Name            string    `help:"Name of the campaign."`
	Agent           string    `help:"Name of the agent."`
	Pace            int       `help:"Calls per minute: 1, 2, 5, 10, 20, 30, 60, 100 or 200."`
	Budget          float64   `help:"Maximum cost of all calls, in the currency of the price list; default: no limit."`
	Timezone        string    `help:"IANA time zone; default: the organization's."`
	StartsAt        time.Time `help:"Start; default: now." placeholder:"2006-01-02T15:04:05Z"`
	EndsAt          time.Time `help:"End." placeholder:"2006-01-02T15:04:05Z"`
	Classification  string    `help:"marketing, servicing or debt_collection."`
	Duplicates      string    `help:"Rows with the same number: reject, keep_first or keep_last."`
	DNC             string    `name:"dnc" help:"Numbers on a do-not-call list: block the launch, or skip them."`
	ContactTimezone bool      `help:"Apply working hours in the time zone of each contact's row."`
	Attempts        int       `help:"Maximum dials per contact, 1 to 10."`
	Trunk           string    `help:"Trunk id."`
	Route           string    `help:"Subgroup id."`
	From            string    `help:"Caller number."`
	Attest          bool      `help:"Confirm that the contacts consented to these calls. Without it the campaign stays a draft."`

	URL    string `name:"url" help:"Server address; default: PARLEY_API_URL, then the configured address." placeholder:"URL"`
	Report string `help:"Write a CSV report of all rows to FILE." type:"path" placeholder:"FILE"`
	Again  bool   `help:"Create it even if an identical one was created in the last day."`
	JSON   bool   `name:"json" help:"Print the response as JSON."`
}

// spec returns the request without rows.
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
	put := func(key string, isSet bool, value any) {
		if isSet {
			spec[key] = value
		}
	}
	put("name", c.Name != "", c.Name)
	put("agent_id", c.Agent != "", c.Agent)
	put("calls_per_minute", c.Pace != 0, c.Pace)
	put("budget", c.Budget != 0, c.Budget)
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
	var result createResponse
	if err = json.Unmarshal(body, &result); err != nil {
		return fmt.Errorf("parse the server's response: %w", err)
	}
	if replayed {
		fmt.Fprintln(client.Errs, "showing the identical campaign from the last day; use --again to create another")
	}
	if c.JSON {
		if err = admincli.WriteJSON(client.Out, json.RawMessage(body)); err != nil {
			return err
		}
	} else {
		result.print(client)
	}
	if c.Report == "" || result.Import == nil {
		return nil
	}
	return client.save(ctx, "/v1/imports/"+result.Import.ID+"/report?format=csv", c.Report)
}

// key returns the Idempotency-Key. It is the same for the same campaign and file, so
// that an interrupted command can be repeated.
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

// A createResponse is the part of the response that print shows.
type createResponse struct {
	ID       string      `json:"campaign_id"`
	Name     string      `json:"name"`
	Status   string      `json:"status"`
	Blockers []checkNote `json:"blockers"`
	Warnings []checkNote `json:"warnings"`
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

// A checkNote is a blocker or a warning of the launch checks.
type checkNote struct {
	Code    string `json:"code"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

// An issue is a problem of a row.
type issue struct {
	Row      int    `json:"row"`
	Column   string `json:"column"`
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Value    string `json:"value"`
	Message  string `json:"message"`
}

// print writes the campaign's id to standard output and the rest to standard error.
func (m createResponse) print(t *Client) {
	fmt.Fprintln(t.Out, m.ID)
	w := t.errTable()
	fmt.Fprintf(w, "%s is %s\n", m.Name, m.Status)
	if i := m.Import; i != nil {
		fmt.Fprintf(w, "%d rows: %d accepted (%d with warnings), %d rejected, %d duplicates, %d on a do-not-call list\n",
			i.RowsSeen, i.Accepted, i.Warned, i.Rejected, i.Duplicates, i.Matched)
		for _, x := range i.Issues.Items {
			fmt.Fprintf(w, "  row %d\t%s\t%s\t%q\t%s\n", x.Row, x.Column, x.Code, x.Value, x.Message)
		}
		if n := i.Issues.Total - len(i.Issues.Items); n > 0 {
			fmt.Fprintf(w, "  and %d more; see --report FILE or GET /v1/imports/%s/report\n", n, i.ID)
		}
	}
	for _, b := range m.Blockers {
		fmt.Fprintf(w, "blocker:\t%s\t%s\t%s\n", b.Code, b.Field, b.Message)
	}
	for _, b := range m.Warnings {
		fmt.Fprintf(w, "warning:\t%s\t%s\t%s\n", b.Code, b.Field, b.Message)
	}
	_ = w.Flush() // a write error of a terminal is ignored
}

// save writes the response of a path to a file.
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

// CampaignReopen reopens contacts whose calls failed because of Parley or a provider.
type CampaignReopen struct {
	ID string `arg:"" help:"Campaign id."`
}

// Run reopens the contacts and logs the operator.
func (c CampaignReopen) Run(ctx context.Context, d *Env) error {
	var org string
	if err := d.Pool.QueryRow(ctx, "SELECT coalesce((SELECT org_id FROM campaigns WHERE id = $1), '')", c.ID).Scan(&org); err != nil {
		return fmt.Errorf("campaign: %w", err)
	}
	if org == "" {
		return store.NotFound()
	}
	n, err := (&service.Service{Pool: d.Pool, Store: &store.Store{Pool: d.Pool}}).Reopen(
		ctx, org, c.ID, service.Actor{Via: campaigns.BySystem, Actor: d.By})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.Out, "%s reopened\n", countNoun(int64(n), "contact", "contacts"))
	return err
}

// CampaignDisclosures switches the disclosures of a campaign.
type CampaignDisclosures struct {
	ID     string `arg:"" help:"Campaign id."`
	Switch string `arg:"" enum:"on,off,default" help:"on, off, or default for the organization's setting."`
}

// Run switches the disclosures.
func (c CampaignDisclosures) Run(ctx context.Context, d *Env) error {
	var on *bool
	if c.Switch != "default" {
		on = new(c.Switch == "on")
	}
	tag, err := d.Pool.Exec(ctx, "UPDATE campaigns SET disclosures = $2, updated_at = now() WHERE id = $1", c.ID, on)
	if err != nil {
		return fmt.Errorf("campaign: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return store.NotFound()
	}
	return nil
}
