package campaigncli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/parley-voice/parley/control/admincli"
)

// maxResponse bounds the size of a response, in bytes.
const maxResponse = 16 << 20

// request sends a JSON body, if it is not nil, and decodes the response into answer. It returns the response as text.
func (c *Client) request(ctx context.Context, method, path string, body, answer any) (json.RawMessage, error) {
	var in io.Reader
	header := http.Header{}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(text)
		header.Set("Content-Type", "application/json")
	}
	resp, err := c.do(ctx, method, path, in, header)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err == nil {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		return nil, fmt.Errorf("parse the server's response: %w", err)
	}
	return text, nil
}

// mostListed is the maximum number of objects that list returns.
const mostListed = 10_000

// list reads pages of a list until it has limit objects: at least 1, at most mostListed.
func (c *Client) list(ctx context.Context, path, key string, q url.Values, limit int) (all []json.RawMessage, err error) {
	all, limit = []json.RawMessage{}, min(max(limit, 1), mostListed)
	for len(all) < limit {
		q.Set("limit", strconv.Itoa(min(100, limit-len(all))))
		var page map[string]json.RawMessage
		if _, err = c.request(ctx, http.MethodGet, path+"?"+q.Encode(), nil, &page); err != nil {
			return nil, err
		}
		var some []json.RawMessage
		var cursor *string
		if err = json.Unmarshal(page[key], &some); err == nil {
			err = json.Unmarshal(page["next_cursor"], &cursor)
		}
		if err != nil {
			return nil, fmt.Errorf("parse the server's response: %w", err)
		}
		if all = append(all, some...); cursor == nil {
			break
		}
		q.Set("cursor", *cursor)
	}
	return all, nil
}

// setQuery sets the query parameters that are not empty.
func setQuery(pairs ...string) url.Values {
	q := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			q.Set(pair[0], pair[1])
		}
	}
	return q
}

// Calls has the commands that use the API for calls.
type Calls struct {
	Place  PlaceCall  `cmd:"" help:"Place a call through a running server and print its id."`
	List   ListCalls  `cmd:"" help:"List calls, newest first."`
	Show   ShowCall   `cmd:"" help:"Show a call: states, result, cost and transcript."`
	Hangup HangupCall `cmd:"" help:"End a call, or cancel it before it is dialed."`
}

// PlaceCall places a call.
type PlaceCall struct {
	Agent string            `required:"" help:"Name of the agent."`
	To    string            `arg:"" name:"number" help:"Number to call, with country code."`
	From  string            `help:"Caller number."`
	Trunk string            `help:"Trunk id."`
	Route string            `help:"Subgroup id."`
	Var   map[string]string `help:"Value for a placeholder of the agent, NAME=VALUE." placeholder:"NAME=VALUE"`
	JSON  bool              `name:"json" help:"Print the call as JSON."`
}

// Run places the call.
func (c PlaceCall) Run(ctx context.Context, client *Client) error {
	body := map[string]any{"agent_id": c.Agent, "to_number": c.To}
	for key, value := range map[string]string{"from_number": c.From, "trunk_id": c.Trunk, "route_id": c.Route} {
		if value != "" {
			body[key] = value
		}
	}
	if len(c.Var) > 0 {
		body["variables"] = c.Var
	}
	var placed call
	text, err := client.request(ctx, http.MethodPost, "/v1/calls/phone", body, &placed)
	if err != nil {
		return err
	}
	if c.JSON {
		return admincli.WriteJSON(client.Out, text)
	}
	_, err = fmt.Fprintln(client.Out, placed.ID)
	return err
}

// ListCalls lists calls.
type ListCalls struct {
	Status   string `help:"Only these statuses: queued, ringing, ongoing, ended, failed; comma-separated."`
	Agent    string `help:"Only calls of this agent."`
	Campaign string `help:"Only calls of this campaign, by id."`
	To       string `help:"Only calls to this number."`
	Reason   string `help:"Only calls with this disconnection_reason."`
	Limit    int    `help:"Maximum number of calls, up to 10,000." default:"50"`
	JSON     bool   `name:"json" help:"Print JSON."`
}

// Run lists the calls.
func (c ListCalls) Run(ctx context.Context, client *Client) error {
	q := setQuery("status", c.Status, "agent_id", c.Agent, "campaign_id", c.Campaign, "to_number", c.To, "disconnection_reason", c.Reason)
	all, err := client.list(ctx, "/v1/calls", "calls", q, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return admincli.WriteJSON(client.Out, all)
	}
	table := admincli.NewTable("ID", "CREATED", "AGENT", "TO", "STATUS", "REASON", "SECONDS")
	for _, text := range all {
		var k call
		if err = json.Unmarshal(text, &k); err != nil {
			return fmt.Errorf("parse the server's response: %w", err)
		}
		seconds := ""
		if k.Duration != nil {
			seconds = strconv.FormatFloat(*k.Duration, 'f', 0, 64)
		}
		table.Add(k.ID, epoch(k.Created), k.Agent, k.To, k.Status, k.Reason, seconds)
	}
	return table.Print(client.Out, false)
}

// call is the part of a call object that the commands print.
type call struct {
	ID         string          `json:"call_id"`
	Status     string          `json:"status"`
	Agent      string          `json:"agent_id"`
	Version    int             `json:"agent_version"`
	To         string          `json:"to_number"`
	From       string          `json:"from_number"`
	Campaign   string          `json:"campaign_id"`
	Created    float64         `json:"created_at"`
	Dialed     float64         `json:"dialed_at"`
	Ringing    float64         `json:"ringing_at"`
	Answered   float64         `json:"answered_at"`
	Ended      float64         `json:"ended_at"`
	Duration   *float64        `json:"duration_s"`
	AnsweredBy string          `json:"answered_by"`
	Reason     string          `json:"disconnection_reason"`
	HangupBy   string          `json:"hangup_by"`
	SIPStatus  int             `json:"sip_status"`
	SIPReason  string          `json:"sip_reason"`
	Recording  string          `json:"recording_status"`
	Analysis   json.RawMessage `json:"call_analysis"`
	Transfer   *struct {
		Target string `json:"target"`
		Status string `json:"status"`
	} `json:"transfer"`
	Cost *struct {
		Amount   json.Number `json:"amount"`
		Currency string      `json:"currency"`
	} `json:"cost"`
	Transcript []struct {
		Role        string  `json:"role"`
		Text        string  `json:"text"`
		Start       float64 `json:"start_s"`
		Turn        int     `json:"turn"`
		Interrupted bool    `json:"interrupted"`
	} `json:"transcript"`
}

// epoch converts seconds since 1970; 0 is the zero time.
func epoch(s float64) *time.Time {
	if s == 0 {
		return nil
	}
	t := time.UnixMilli(int64(s * 1000)).UTC()
	return &t
}

// ShowCall shows a call.
type ShowCall struct {
	ID   string `arg:"" help:"The call's id."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run shows the call.
func (c ShowCall) Run(ctx context.Context, client *Client) error {
	var k call
	text, err := client.request(ctx, http.MethodGet, "/v1/calls/"+url.PathEscape(c.ID), nil, &k)
	if err != nil {
		return err
	}
	if c.JSON {
		return admincli.WriteJSON(client.Out, text)
	}
	return k.print(client.Out)
}

func (k call) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, value)
		}
	}
	at := func(name string, s float64) {
		if t := epoch(s); t != nil {
			row(name, t.Format("2006-01-02 15:04:05.000 UTC"))
		}
	}
	row("call", k.ID)
	row("status", strings.TrimSpace(k.Status+" "+k.Reason))
	row("agent", fmt.Sprintf("%s, version %d", k.Agent, k.Version))
	row("number", fmt.Sprintf("%s, from %s", k.To, cmp.Or(k.From, "–")))
	row("campaign", k.Campaign)
	at("created", k.Created)
	at("dialed", k.Dialed)
	at("ringing", k.Ringing)
	at("answered", k.Answered)
	at("ended", k.Ended)
	row("answered by", k.AnsweredBy)
	row("hung up by", k.HangupBy)
	if k.SIPStatus != 0 {
		row("SIP", fmt.Sprintf("%d %s", k.SIPStatus, k.SIPReason))
	}
	if k.Transfer != nil {
		row("transfer", k.Transfer.Target+" "+k.Transfer.Status)
	}
	row("recording", k.Recording)
	if k.Cost != nil {
		row("cost", fmt.Sprintf("%s %s", k.Cost.Amount, k.Cost.Currency))
	}
	if text := string(k.Analysis); text != "null" {
		row("analysis", text)
	}
	for n, l := range k.Transcript {
		if n == 0 {
			fmt.Fprintln(w)
		}
		row(fmt.Sprintf("%7.1f s  %s", l.Start, l.Role), l.Text)
	}
	return w.Flush()
}

// HangupCall ends a call.
type HangupCall struct {
	ID   string `arg:"" help:"The call's id."`
	JSON bool   `name:"json" help:"Print the call as JSON."`
}

// Run ends the call.
func (c HangupCall) Run(ctx context.Context, client *Client) error {
	var k call
	text, err := client.request(ctx, http.MethodPost, "/v1/calls/"+url.PathEscape(c.ID)+"/end", nil, &k)
	if err != nil {
		return err
	}
	if c.JSON {
		return admincli.WriteJSON(client.Out, text)
	}
	_, err = fmt.Fprintf(client.Out, "%s %s\n", k.Status, k.Reason)
	return err
}
