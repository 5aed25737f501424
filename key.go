package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/control/admincli"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create an API key. Prints its secret once to standard output, its id to standard error."`
	List   keyListCmd   `cmd:"" help:"List API keys."`
	Set    keySetCmd    `cmd:"" help:"Change the rate limit of a key."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key at once."`
}

// rateLimit is a flag value in requests per minute: a number, 0 for the limit of the server's settings, or off.
type rateLimit int

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *rateLimit) UnmarshalText(b []byte) error {
	if string(b) == "off" {
		*r = apikeys.RateOff
		return nil
	}
	n, err := strconv.Atoi(string(b))
	if err != nil || n < 0 {
		return fmt.Errorf("%q: accepted: requests per minute, 0 for the platform's limit, or off", b)
	}
	*r = rateLimit(n)
	return nil
}

func (r rateLimit) String() string {
	switch r {
	case apikeys.RateOff:
		return "off"
	case apikeys.RateDefault:
		return "default"
	default:
		return strconv.Itoa(int(r))
	}
}

// lifetime is a flag value: a duration in which d stands for days.
type lifetime time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *lifetime) UnmarshalText(b []byte) error {
	if n, err := strconv.Atoi(strings.TrimSuffix(string(b), "d")); err == nil && strings.HasSuffix(string(b), "d") && n > 0 && n <= 3660 {
		*l = lifetime(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	d, err := time.ParseDuration(string(b))
	if err != nil || d <= 0 || d > apikeys.MaxLife {
		return fmt.Errorf("%q: accepted: a time up to 3660d, such as 90d or 12h", b)
	}
	*l = lifetime(d)
	return nil
}

type keyCreateCmd struct {
	Org        string    `required:"" help:"Name of the organization."`
	Name       string    `help:"Purpose of the key."`
	RateLimit  rateLimit `help:"Requests per minute; 0 for the platform's limit, or off." default:"0"`
	Privileged bool      `help:"Allow operations of the root organization."`
	Scope      []string  `help:"Part of the API that the key may use: read, calls, campaigns or admin. Repeatable; all if absent." placeholder:"NAME"`
	Expires    lifetime  `help:"Time until the key expires, such as 90d or 12h; never if absent." placeholder:"TIME"`
	JSON       bool      `name:"json" help:"Print id and secret as JSON."`
}

// Run creates a key and prints its secret.
func (c keyCreateCmd) Run(e *env) error {
	scopes, err := apikeys.ParseScopes(c.Scope)
	if err != nil {
		return err
	}
	var expires *time.Time
	if c.Expires > 0 {
		expires = new(time.Now().Add(time.Duration(c.Expires)))
	}
	d, err := e.open()
	if err != nil {
		return err
	}
	defer d.Close()
	org, err := apikeys.FindOrganization(e, d.Pool, c.Org)
	if err != nil {
		return err
	}
	key := apikeys.Key{
		OrgID: org, Name: c.Name, RateLimit: int(c.RateLimit), Privileged: c.Privileged, Scopes: scopes, ExpiresAt: expires,
	}
	var id string
	var secret media.Secret
	err = operator.ChangeAs(e, d.Pool, operator.CommandLine(org), func(q db.Querier) (_ operator.Entry, fault error) {
		id, secret, fault = apikeys.CreateKey(e, q, key)
		return operator.Entry{Action: "key.create", Object: id, After: key.Properties()}, fault
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return admincli.WriteJSON(e.out, map[string]string{"id": id, "secret": string(secret)})
	}
	_, errID := fmt.Fprintln(e.errs, id)
	_, errSecret := fmt.Fprintln(e.out, string(secret))
	return errors.Join(errID, errSecret)
}

type keyListCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists the keys without secrets, which are not stored.
func (c keyListCmd) Run(e *env) error {
	d, err := e.open()
	if err != nil {
		return err
	}
	defer d.Close()
	keys, err := apikeys.ListKeys(e, d.Pool)
	if err != nil {
		return err
	}
	t := admincli.NewTable("ID", "ORGANIZATION", "NAME", "RATE LIMIT", "SCOPES", "CREATED", "LAST USED", "EXPIRES", "REVOKED")
	for _, k := range keys {
		t.Add(k.ID, k.OrgName, k.Name, rateLimit(k.RateLimit).String(), cmp.Or(apikeys.JoinScopes(k.Scopes), "all"),
			k.CreatedAt, k.LastUsedAt, k.ExpiresAt, k.RevokedAt)
	}
	return t.Print(e.out, c.JSON)
}

type keySetCmd struct {
	ID        string    `arg:""`
	RateLimit rateLimit `required:"" help:"Requests per minute; 0 for the platform's limit, or off."`
}

// Run changes a key's limit.
func (c keySetCmd) Run(e *env) error {
	d, err := e.open()
	if err != nil {
		return err
	}
	defer d.Close()
	k, err := apikeys.ReadKey(e, d.Pool, c.ID)
	if err != nil {
		return err
	}
	return operator.ChangeAs(e, d.Pool, operator.CommandLine(k.OrgID), func(q db.Querier) (operator.Entry, error) {
		return operator.Entry{
			Action: "key.limit", Object: k.ID,
			Before: map[string]any{"rate_limit": k.RateLimit}, After: map[string]any{"rate_limit": int(c.RateLimit)},
		}, apikeys.SetRateLimit(e, q, k.ID, int(c.RateLimit))
	})
}

type keyRevokeCmd struct {
	ID string `arg:""`
}

// Run revokes a key.
func (c keyRevokeCmd) Run(e *env) error {
	d, err := e.open()
	if err != nil {
		return err
	}
	defer d.Close()
	k, err := apikeys.ReadKey(e, d.Pool, c.ID)
	if err != nil || k.RevokedAt != nil {
		return err
	}
	return operator.ChangeAs(e, d.Pool, operator.CommandLine(k.OrgID), func(q db.Querier) (operator.Entry, error) {
		return operator.Entry{Action: "key.revoke", Object: k.ID, Before: map[string]any{"name": k.Name}}, apikeys.Revoke(e, q, k.ID)
	})
}
