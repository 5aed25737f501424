package campaigncli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/control/admincli"
	"github.com/parley-voice/parley/control/callview"
)

// Logs prints what happened in a call.
type Logs struct {
	ID   string `arg:"" help:"The call's id."`
	SIP  bool   `name:"sip" help:"Include the SIP messages, from the database in this machine's settings."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Signaling reads the SIP messages of a call from the database.
type Signaling func(ctx context.Context, callID string) ([]callview.Rung, error)

// event is something that happened in a call.
type event struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // state, caller, agent or sip
	Text string    `json:"text"`
}

// turn has the metrics of one turn.
type turn struct {
	Turn    int            `json:"turn"`
	Metrics map[string]any `json:"metrics"`
}

// Run prints the events in order.
func (c Logs) Run(ctx context.Context, client *Client, signaling Signaling) error {
	var k call
	path := "/v1/calls/" + url.PathEscape(c.ID)
	if _, err := client.request(ctx, http.MethodGet, path, nil, &k); err != nil {
		return err
	}
	var turns []turn
	if _, err := client.request(ctx, http.MethodGet, path+"/turns", nil, &turns); err != nil {
		return err
	}
	var ladder []callview.Rung
	if c.SIP {
		var err error
		if ladder, err = signaling(ctx, c.ID); err != nil {
			return err
		}
	}
	if c.SIP && len(ladder) == 0 {
		fmt.Fprintln(client.Errs, "No SIP messages are stored for this call. They are stored when a call ends.")
	}
	all := timeline(k, turns, ladder)
	if c.JSON {
		return admincli.WriteJSON(client.Out, all)
	}
	return printEvents(client.Out, all)
}

// timeline returns the events of a call in order.
func timeline(k call, turns []turn, ladder []callview.Rung) []event {
	all := []event{}
	add := func(at float64, kind, text string) {
		if t := epoch(at); t != nil {
			all = append(all, event{*t, kind, strings.TrimSpace(text)})
		}
	}
	add(k.Created, "state", fmt.Sprintf("queued: agent %s calls %s", k.Agent, k.To))
	add(k.Dialed, "state", "dialed from "+k.From)
	add(k.Ringing, "state", "ringing")
	add(k.Answered, "state", "answered "+k.AnsweredBy)
	for _, l := range k.Transcript {
		text := l.Text
		if l.Role == "agent" {
			text += metricsText(turns, l.Turn)
		}
		if l.Interrupted {
			text += " (interrupted)"
		}
		add(k.Answered+l.Start, l.Role, text)
	}
	for _, m := range ladder {
		arrow := "←"
		if m.Out {
			arrow = "→"
		}
		all = append(all, event{m.At.UTC(), "sip", fmt.Sprintf("%s %s %s", arrow, m.Peer, m.Line)})
	}
	end := fmt.Sprintf("%s: %s", k.Status, k.Reason)
	if k.SIPStatus >= 300 {
		end += fmt.Sprintf(" (SIP %d %s)", k.SIPStatus, k.SIPReason)
	}
	add(k.Ended, "state", end)
	slices.SortStableFunc(all, func(a, b event) int { return a.At.Compare(b.At) })
	return all
}

// metricsText describes the response time of a turn.
func metricsText(turns []turn, n int) string {
	i := slices.IndexFunc(turns, func(t turn) bool { return t.Turn == n })
	if i < 0 {
		return ""
	}
	var parts []string
	for _, key := range []string{"turn_ms", "asr_ms", "llm_ms", "tts_ms"} {
		if ms, ok := turns[i].Metrics[key].(float64); ok {
			parts = append(parts, fmt.Sprintf("%s %.0f", strings.TrimSuffix(key, "_ms"), ms))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " [ms: " + strings.Join(parts, ", ") + "]"
}

func printEvents(out io.Writer, all []event) error {
	for n, e := range all {
		if n == 0 {
			fmt.Fprintln(out, e.At.Format("2006-01-02 15:04:05.000 UTC"))
		}
		text, err := json.Marshal(e.Text) // escapes control characters of the peer
		if err != nil {
			return err
		}
		if _, err = fmt.Fprintf(out, "%+10.3f  %-6s  %s\n", e.At.Sub(all[0].At).Seconds(), e.Kind, text[1:len(text)-1]); err != nil {
			return err
		}
	}
	return nil
}
