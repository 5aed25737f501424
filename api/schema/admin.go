package schema

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/webhook"
	"github.com/parley-voice/parley/media"
)

// Off is the value of a rate limit that disables it.
const Off = "off"

type (
	// A NewOrganization is the body of POST /v1/admin/organizations.
	NewOrganization struct {
		_        struct{} `additionalProperties:"true" json:"-"`
		Name     string   `doc:"Name of the organization, unique in the service" example:"acme" json:"name" maxLength:"200" minLength:"1"`
		Timezone *string  `doc:"IANA name of its time zone; empty means UTC" example:"America/New_York" json:"timezone,omitempty" nullable:"true"`
	}
	// An OrganizationChange is the body of PATCH /v1/admin/organizations/{id}.
	OrganizationChange struct {
		_             struct{} `additionalProperties:"true" json:"-"`
		Market        string   `doc:"Market rules of the organization's campaigns; empty means none" example:"us" json:"market" maxLength:"40"`
		MarketVersion *string  `doc:"Version of an installed market package; empty means the built-in rules" json:"market_version,omitempty" maxLength:"200" nullable:"true"`
	}
	// A NewKey is the body of POST /v1/admin/keys.
	NewKey struct {
		_              struct{} `additionalProperties:"true" json:"-"`
		OrganizationID string   `doc:"Organization of the key" json:"organization_id"`
		Name           *string  `doc:"Purpose of the key" json:"name,omitempty" maxLength:"200" nullable:"true"`
		RateLimit      any      `doc:"Requests per minute; 0 means the platform's limit, off means no limit" json:"rate_limit,omitempty"`
		Privileged     *bool    `doc:"Whether the key may use /v1/admin; its organization must be root" json:"privileged,omitempty" nullable:"true"`
		Scopes         []string `doc:"Parts of the API that the key may use: read, calls, campaigns, admin; empty means all" json:"scopes,omitempty" nullable:"true"`
		ExpiresAt      *float64 `doc:"When the key expires, in seconds since 1970; empty means never" json:"expires_at,omitempty" nullable:"true"`
	}
	// A KeyChange is the body of PATCH /v1/admin/keys/{id}.
	KeyChange struct {
		_         struct{} `additionalProperties:"true" json:"-"`
		RateLimit any      `doc:"Requests per minute; 0 means the platform's limit, off means no limit" json:"rate_limit" required:"true"`
	}
	// A NewWebhook is the body of POST /v1/admin/webhooks.
	NewWebhook struct {
		_              struct{} `additionalProperties:"true" json:"-"`
		OrganizationID string   `doc:"Organization whose calls are delivered" json:"organization_id"`
		URL            string   `doc:"Address that receives the events, https" example:"https://crm.example/hook" json:"url" maxLength:"2000"`
		Secret         *string  `doc:"Secret that signs deliveries: whsec_ and base64; empty means a generated one" json:"secret,omitempty" nullable:"true"`
		Events         []string `doc:"Events to deliver: call_ended, call_analyzed; empty means both" json:"events,omitempty" nullable:"true"`
	}
)

func (s *Set) addAdmin() {
	s.reg.Schema(reflect.TypeFor[NewOrganization](), true, "NewOrganization")
	s.reg.Schema(reflect.TypeFor[OrganizationChange](), true, "OrganizationChange")
	s.reg.Schema(reflect.TypeFor[NewKey](), true, "NewKey")
	s.reg.Schema(reflect.TypeFor[KeyChange](), true, "KeyChange")
	s.reg.Schema(reflect.TypeFor[NewWebhook](), true, "NewWebhook")
	for _, name := range []string{"NewKey", "KeyChange"} {
		limit := &huma.Schema{
			Description: "Requests per minute; 0 means the platform's limit, off means no limit", Examples: []any{600},
			OneOf: []*huma.Schema{
				{Type: huma.TypeInteger, Minimum: new(0.0), Maximum: new(1e6)},
				{Type: huma.TypeString, Enum: []any{Off}},
			},
		}
		for _, s := range append(limit.OneOf, limit) {
			s.PrecomputeMessages()
		}
		s.reg.Map()[name].Properties["rate_limit"] = limit
	}
}

// Organization reads the body of POST /v1/admin/organizations.
func (s *Set) Organization(b *Body) (name, timezone string, err error) {
	var o NewOrganization
	if err = s.Check(b, "NewOrganization", &o); err != nil {
		return "", "", err
	}
	if name = strings.TrimSpace(o.Name); name == "" {
		return "", "", InvalidValue("name", "name is required", o.Name)
	}
	if timezone = or(o.Timezone); timezone == "" {
		timezone = "UTC"
	} else if _, err = control.Zone(timezone); err != nil {
		return "", "", InvalidValue("timezone", err.Error(), timezone)
	}
	return name, timezone, nil
}

// OrganizationChange reads the body of PATCH /v1/admin/organizations/{id}.
func (s *Set) OrganizationChange(b *Body) (market, version string, err error) {
	var c OrganizationChange
	err = s.Check(b, "OrganizationChange", &c)
	return c.Market, or(c.MarketVersion), err
}

// Key reads the body of POST /v1/admin/keys.
func (s *Set) Key(b *Body) (apikeys.Key, error) {
	var k NewKey
	if err := s.Check(b, "NewKey", &k); err != nil {
		return apikeys.Key{}, err
	}
	key := apikeys.Key{OrgID: k.OrganizationID, Name: or(k.Name), RateLimit: rate(k.RateLimit), Privileged: or(k.Privileged)}
	var err error
	if key.Scopes, err = apikeys.ParseScopes(k.Scopes); err != nil {
		return key, InvalidValue("scopes", err.Error(), strings.Join(k.Scopes, ","))
	}
	if key.Privileged && !key.Allows(apikeys.ScopeAdmin) {
		return key, InvalidValue("scopes", "a privileged key needs the scope admin, or no scopes", strings.Join(k.Scopes, ","))
	}
	if k.ExpiresAt != nil {
		at := time.UnixMilli(int64(*k.ExpiresAt * 1000))
		if err = apikeys.CheckExpiry(&at, time.Now()); err != nil {
			return key, InvalidValue("expires_at", err.Error(), *k.ExpiresAt)
		}
		key.ExpiresAt = &at
	}
	return key, nil
}

// KeyChange reads the body of PATCH /v1/admin/keys/{id}.
func (s *Set) KeyChange(b *Body) (rateLimit int, err error) {
	var k KeyChange
	err = s.Check(b, "KeyChange", &k)
	return rate(k.RateLimit), err
}

func rate(v any) int {
	switch v := v.(type) {
	case string:
		return apikeys.RateOff
	case json.Number:
		f, _ := v.Float64() // the schema has checked it
		return int(f)
	default:
		return apikeys.RateDefault
	}
}

// Webhook reads the body of POST /v1/admin/webhooks.
func (s *Set) Webhook(b *Body, insecure bool) (webhook.Endpoint, error) {
	var h NewWebhook
	if err := s.Check(b, "NewWebhook", &h); err != nil {
		return webhook.Endpoint{}, err
	}
	e := webhook.Endpoint{OrgID: h.OrganizationID, URL: h.URL, Secret: media.Secret(or(h.Secret)), Events: h.Events}
	if e.Secret == "" {
		e.Secret = webhook.NewSecret()
	}
	if len(e.Events) == 0 {
		e.Events = webhook.Types()
	}
	if err := e.Check(insecure); err != nil {
		return webhook.Endpoint{}, InvalidValue("", err.Error(), nil)
	}
	return e, nil
}

// InvalidValue returns the error of a value that the schema accepts and the server rejects.
func InvalidValue(member, msg string, input any) error {
	loc := []any{"body"}
	if member != "" {
		loc = append(loc, member)
	}
	return &response.InvalidError{Issues: []response.Issue{{Type: "value_error", Loc: loc, Msg: "Value error, " + msg, Input: input}}}
}
