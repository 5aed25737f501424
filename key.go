package main

import (
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/parley-voice/parley/control/access"
)

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Issue an API key: its secret goes to standard output, once; its id to standard error."`
	List   keyListCmd   `cmd:"" help:"List the keys."`
	Set    keySetCmd    `cmd:"" help:"Change a key's rate limit, from its next request on."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key, from its next request on."`
}

// A rateLimit is requests a minute: N, 0 for the platform's limit, or off.
type rateLimit int

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *rateLimit) UnmarshalText(b []byte) error {
	if string(b) == "off" {
		*r = access.RateOff
		return nil
	}
	n, err := strconv.Atoi(string(b))
	if err != nil || n < 0 {
		return fmt.Errorf("%q: accepted: requests a minute, 0 for the platform's limit, or off", b)
	}
	*r = rateLimit(n)
	return nil
}

func (r rateLimit) String() string {
	switch r {
	case access.RateOff:
		return "off"
	case access.RateDefault:
		return "default"
	default:
		return strconv.Itoa(int(r))
	}
}

type keyCreateCmd struct {
	Org        string    `required:"" help:"Name of the organization."`
	Name       string    `help:"What the key is for."`
	RateLimit  rateLimit `help:"Requests a minute; 0 for the platform's limit, or off." default:"0"`
	Privileged bool      `help:"Allow operations of the root organization."`
}

// Run issues a key.
func (c keyCreateCmd) Run(w *world) error {
	d, err := w.open()
	if err != nil {
		return err
	}
	defer d.Close()
	org, err := access.FindOrganization(w, d.Pool, c.Org)
	if err != nil {
		return err
	}
	id, secret, err := access.CreateKey(w, d.Pool, access.Key{
		OrgID: org, Name: c.Name, RateLimit: int(c.RateLimit), Privileged: c.Privileged,
	})
	if err != nil {
		return err
	}
	_, errID := fmt.Fprintln(w.errs, id)
	_, errSecret := fmt.Fprintln(w.out, string(secret))
	return errors.Join(errID, errSecret)
}

type keyListCmd struct{}

// Run lists the keys, without their secrets: nobody has those.
func (keyListCmd) Run(w *world) error {
	d, err := w.open()
	if err != nil {
		return err
	}
	defer d.Close()
	keys, err := access.ListKeys(w, d.Pool)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tORGANIZATION\tNAME\tRATE LIMIT\tCREATED\tLAST USED\tREVOKED")
	for _, k := range keys {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.OrgName, k.Name, rateLimit(k.RateLimit),
			day(&k.CreatedAt), day(k.LastUsedAt), day(k.RevokedAt))
	}
	return t.Flush()
}

func day(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04")
}

type keySetCmd struct {
	ID        string    `arg:""`
	RateLimit rateLimit `required:"" help:"Requests a minute; 0 for the platform's limit, or off."`
}

// Run changes a key's limit.
func (c keySetCmd) Run(w *world) error {
	d, err := w.open()
	if err != nil {
		return err
	}
	defer d.Close()
	return access.SetRateLimit(w, d.Pool, c.ID, int(c.RateLimit))
}

type keyRevokeCmd struct {
	ID string `arg:""`
}

// Run revokes a key.
func (c keyRevokeCmd) Run(w *world) error {
	d, err := w.open()
	if err != nil {
		return err
	}
	defer d.Close()
	return access.Revoke(w, d.Pool, c.ID)
}
