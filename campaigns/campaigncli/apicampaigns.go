package campaigncli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"text/tabwriter"

	"github.com/parley-voice/parley/control/admincli"
)

// campaign is the part of a campaign object that the commands print.
type campaign struct {
	ID       string      `json:"campaign_id"`
	Name     string      `json:"name"`
	Status   string      `json:"status"`
	Agent    string      `json:"agent_id"`
	Pace     int         `json:"calls_per_minute"`
	Starts   float64     `json:"starts_at"`
	Ends     float64     `json:"ends_at"`
	Created  float64     `json:"created_at"`
	Zone     string      `json:"timezone"`
	Blockers []checkNote `json:"blockers"`
}

// ListCampaigns lists campaigns.
type ListCampaigns struct {
	Status string `help:"Only these statuses: draft, scheduled, running, paused, completed, cancelled; comma-separated."`
	Limit  int    `help:"Maximum number of campaigns, up to 10,000." default:"50"`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run lists the campaigns.
func (c ListCampaigns) Run(ctx context.Context, client *Client) error {
	all, err := client.list(ctx, "/v1/campaigns", "campaigns", setQuery("status", c.Status), c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return admincli.WriteJSON(client.Out, all)
	}
	table := admincli.NewTable("ID", "CREATED", "NAME", "STATUS", "AGENT", "PER MINUTE")
	for _, text := range all {
		var k campaign
		if err = json.Unmarshal(text, &k); err != nil {
			return fmt.Errorf("parse the server's response: %w", err)
		}
		table.Add(k.ID, epoch(k.Created), k.Name, k.Status, k.Agent, k.Pace)
	}
	return table.Print(client.Out, false)
}

// ShowCampaign shows a campaign and its progress.
type ShowCampaign struct {
	ID   string `arg:"" help:"Campaign id."`
	JSON bool   `name:"json" help:"Print JSON: the campaign, with its progress in the member progress."`
}

// Run shows the campaign.
func (c ShowCampaign) Run(ctx context.Context, client *Client) error {
	path := "/v1/campaigns/" + url.PathEscape(c.ID)
	var k campaign
	text, err := client.request(ctx, http.MethodGet, path, nil, &k)
	if err != nil {
		return err
	}
	var p struct {
		ByState map[string]int `json:"by_state"`
		Ready   int            `json:"ready"`
		Held    map[string]int `json:"held_reasons"`
	}
	progress, err := client.request(ctx, http.MethodGet, path+"/progress", nil, &p)
	if err != nil {
		return err
	}
	if c.JSON {
		var object map[string]json.RawMessage
		if err = json.Unmarshal(text, &object); err != nil {
			return err
		}
		object["progress"] = progress
		return admincli.WriteJSON(client.Out, object)
	}
	w := tabwriter.NewWriter(client.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "campaign\t%s %s\nstatus\t%s\nagent\t%s, %d calls per minute\n", k.ID, k.Name, k.Status, k.Agent, k.Pace)
	for _, at := range []struct {
		name string
		at   float64
	}{{"starts", k.Starts}, {"ends", k.Ends}} {
		if t := epoch(at.at); t != nil {
			fmt.Fprintf(w, "%s\t%s\n", at.name, t.Format("2006-01-02 15:04 UTC"))
		}
	}
	for _, state := range slices.Sorted(maps.Keys(p.ByState)) {
		fmt.Fprintf(w, "%s\t%d\n", state, p.ByState[state])
	}
	fmt.Fprintf(w, "ready now\t%d\n", p.Ready)
	for _, reason := range slices.Sorted(maps.Keys(p.Held)) {
		fmt.Fprintf(w, "held: %s\t%d\n", reason, p.Held[reason])
	}
	if k.Status == "draft" {
		for _, b := range k.Blockers {
			fmt.Fprintf(w, "blocker\t%s %s\n", b.Code, b.Message)
		}
	}
	return w.Flush()
}

// CampaignID is the argument of the commands that change the status of a campaign.
type CampaignID struct {
	ID   string `arg:"" help:"Campaign id."`
	JSON bool   `name:"json" help:"Print the campaign as JSON."`
}

// PauseCampaign pauses a campaign, or all that are running.
type PauseCampaign struct {
	ID   string `arg:"" optional:"" help:"Campaign id."`
	All  bool   `help:"Pause all running campaigns of the organization, also newly launched ones."`
	JSON bool   `name:"json" help:"Print the campaign as JSON; with --all, a list."`
}

// ResumeCampaign resumes a campaign.
type ResumeCampaign struct{ CampaignID }

// CancelCampaign cancels a campaign.
type CancelCampaign struct{ CampaignID }

// Validate requires an id or --all.
func (c PauseCampaign) Validate() error {
	if c.All == (c.ID != "") {
		return errors.New("expected a campaign id or --all")
	}
	return nil
}

// Run pauses the campaigns.
func (c PauseCampaign) Run(ctx context.Context, client *Client) error {
	if !c.All {
		return CampaignID{c.ID, c.JSON}.post(ctx, client, "pause")
	}
	paused, err := client.pauseAll(ctx)
	if c.JSON {
		return errors.Join(err, admincli.WriteJSON(client.Out, paused))
	}
	_, fault := fmt.Fprintln(client.Out, countNoun(int64(len(paused)), "campaign", "campaigns")+" paused; active calls continue")
	return errors.Join(err, fault)
}

// pauseRounds limits how often pauseAll looks for newly launched campaigns.
const pauseRounds = 4

// pauseAll pauses running campaigns until none is found that it has not tried. The error names each failure.
func (c *Client) pauseAll(ctx context.Context) ([]json.RawMessage, error) {
	paused, tried := []json.RawMessage{}, map[string]bool{}
	var faults []error
	for round := range pauseRounds {
		running, err := c.list(ctx, "/v1/campaigns", "campaigns", setQuery("status", "running"), mostListed)
		if err != nil {
			return paused, errors.Join(append(faults, err)...)
		}
		before := len(tried)
		for _, text := range running {
			var k campaign
			if err = json.Unmarshal(text, &k); err != nil {
				return paused, fmt.Errorf("parse the server's response: %w", err)
			}
			switch {
			case tried[k.ID]:
				continue
			case round == pauseRounds-1:
				faults = append(faults, fmt.Errorf("%s %s was launched just now and is running", k.ID, k.Name))
				continue
			}
			tried[k.ID] = true
			after, fault := c.request(ctx, http.MethodPost, "/v1/campaigns/"+url.PathEscape(k.ID)+"/pause", nil, &k)
			if fault != nil {
				faults = append(faults, fmt.Errorf("%s %s is not paused: %w", k.ID, k.Name, fault))
				continue
			}
			paused = append(paused, after)
			fmt.Fprintf(c.Errs, "%s %s is paused\n", k.ID, k.Name)
		}
		if len(tried) == before {
			break
		}
	}
	return paused, errors.Join(faults...)
}

// Run resumes the campaign.
func (c ResumeCampaign) Run(ctx context.Context, client *Client) error {
	return c.post(ctx, client, "resume")
}

// Run cancels the campaign.
func (c CancelCampaign) Run(ctx context.Context, client *Client) error {
	return c.post(ctx, client, "cancel")
}

func (c CampaignID) post(ctx context.Context, client *Client, action string) error {
	var k campaign
	text, err := client.request(ctx, http.MethodPost, "/v1/campaigns/"+url.PathEscape(c.ID)+"/"+action, nil, &k)
	if err != nil {
		return err
	}
	if c.JSON {
		return admincli.WriteJSON(client.Out, text)
	}
	_, err = fmt.Fprintf(client.Out, "%s is %s\n", k.Name, k.Status)
	return err
}
