package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/retention"
	"github.com/parley-voice/parley/media"
)

// Current returns the settings of an organization in the form of the file, without agents, trunks and webhooks.
// Fields that the organization has not set are nil.
func Current(ctx context.Context, q db.Querier, orgID string) (Organization, error) {
	var o Organization
	var zone string
	var text []byte
	err := q.QueryRow(ctx, "SELECT name, timezone, settings FROM organizations WHERE id = $1", orgID).Scan(&o.Name, &zone, &text)
	if err != nil {
		return o, fmt.Errorf("organization: %w", err)
	}
	var s struct {
		Market          *string          `json:"market"`
		CallingWindow   *Window          `json:"calling_window"`
		FrequencyCaps   *Caps            `json:"frequency_caps"`
		RequireRegistry *bool            `json:"require_registry"`
		IndividualDNC   *string          `json:"individual_dnc"`
		Disclosures     *Disclosures     `json:"disclosures"`
		Limits          *OrgLimits       `json:"limits"`
		Retention       *retention.Rules `json:"retention"`
	}
	if err = json.Unmarshal(text, &s); err != nil {
		return o, fmt.Errorf("organization: settings: %w", err)
	}
	o.Timezone, o.Market, o.CallingWindow = &zone, s.Market, s.CallingWindow
	o.FrequencyCaps, o.RequireRegistry = s.FrequencyCaps, s.RequireRegistry
	o.IndividualDNC, o.Disclosures, o.Limits, o.Retention = s.IndividualDNC, s.Disclosures, s.Limits, s.Retention
	return o, nil
}

// HiddenSecret stands for a secret in output. If a client sends it back, the stored secret is kept.
const HiddenSecret = "[secret]"

// FromAgent returns an agent in the form of the file, with HiddenSecret in place of each tool header.
func FromAgent(a agents.Agent) Agent {
	w := WithSecrets(a)
	for _, t := range *w.Tools {
		for name := range t.Headers {
			t.Headers[name] = HiddenSecret
		}
	}
	return w
}

// WithSecrets returns an agent in the form of the file, with the headers of its tools.
func WithSecrets(a agents.Agent) Agent {
	d := a.Draft
	w := Agent{
		Name: a.Name, Greeting: &d.Greeting, Prompt: &d.Prompt, Language: &d.Language, Voicemail: &d.Voicemail,
		Message: &d.VoicemailMessage, Recording: &d.Recording,
		Analysis: &Analysis{
			Summary:   &d.Analysis.Summary,
			Success:   &d.Analysis.Success,
			Sentiment: &d.Analysis.Sentiment,
			Fields:    &d.Analysis.Fields,
		},
		Speech:       &Speech{ASR: &d.Speech.ASR, LLM: &d.Speech.LLM, TTS: &d.Speech.TTS},
		Patience:     &d.Patience,
		MaxDurationS: &d.MaxDurationS, Limits: &d.Limits, Variables: &d.Variables, Pronunciation: &d.Pronunciation, Tools: &[]Tool{},
	}
	for _, t := range d.Tools {
		tool := Tool{
			Type: t.Type, Description: t.Description, Destinations: t.Destinations, Name: t.Name, Parameters: RawValue{t.Parameters}, URL: t.URL,
			Method: t.Method, TimeoutS: t.TimeoutS, Filler: t.Filler,
		}
		for name, value := range t.Headers {
			if tool.Headers == nil {
				tool.Headers = map[string]media.Secret{}
			}
			tool.Headers[name] = media.Secret(value)
		}
		*w.Tools = append(*w.Tools, tool)
	}
	return w
}

// RestoreSecrets replaces HiddenSecret in an agent's tools by the secrets in the earlier definition. The name and the
// URL of the tool must be unchanged, so that no server receives the secret of another server.
func (a *Agent) RestoreSecrets(before agents.Definition) error {
	if a.Tools == nil {
		return nil
	}
	for i, t := range *a.Tools {
		at := slices.IndexFunc(before.Tools, func(b agents.Tool) bool { return b.Name == t.Name && b.URL == t.URL })
		for name, value := range t.Headers {
			if value != HiddenSecret {
				continue
			}
			if at < 0 || before.Tools[at].Headers[name] == "" {
				return fmt.Errorf("tools[%d].headers.%s: no value is stored for this server: enter the value", i, name)
			}
			t.Headers[name] = media.Secret(before.Tools[at].Headers[name])
		}
	}
	return nil
}

// IsDatabaseError reports whether an error of Apply is caused by the database instead of the input.
func IsDatabaseError(err error) bool {
	_, refused := errors.AsType[*pgconn.PgError](err)
	_, away := errors.AsType[*pgconn.ConnectError](err)
	return refused || away || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, pgx.ErrTxClosed) ||
		errors.Is(err, pgx.ErrNoRows)
}
