package admincli

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-voice/parley/control/secretbox"
)

// Secrets groups the commands for the key that encrypts secrets.
type Secrets struct {
	Generate GenerateKey   `cmd:"" help:"Print a new key for PARLEY_SEAL_KEY."`
	Rotate   RotateSecrets `cmd:"" help:"Encrypt all secrets again with the first key of PARLEY_SEAL_KEY, and show which keys are in use."`
}

// GenerateKey prints a new key.
type GenerateKey struct{}

// Run prints the key.
func (GenerateKey) Run(d *Env) error {
	_, err := fmt.Fprintln(d.Out, string(secretbox.Generate()))
	return err
}

// RotateSecrets encrypts all secrets with the first key.
type RotateSecrets struct{}

// Run encrypts the secrets, and reports which keys the settings no longer need.
func (RotateSecrets) Run(ctx context.Context, d *Env) error {
	if d.SealKeys == "" {
		return errors.New("PARLEY_SEAL_KEY is not set: set it to OLD,NEW on every node, then to NEW,OLD, and then run this command")
	}
	keys, err := secretbox.Parse(d.SealKeys)
	if err != nil {
		return fmt.Errorf("PARLEY_SEAL_KEY: %w", err)
	}
	if err = secretbox.Rotate(ctx, d.Pool, keys); err != nil {
		return err
	}
	used, err := secretbox.Used(ctx, d.Pool)
	if err != nil {
		return err
	}
	t := d.table()
	fmt.Fprintln(t, "KEY\tID\tSECRETS")
	for n, k := range keys {
		fmt.Fprintf(t, "%d\t%s\t%d\n", n+1, k.ID, used[k.ID])
	}
	if err = t.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(d.Out, "When key 1 is the first in PARLEY_SEAL_KEY on every node, remove the keys with 0 secrets from it.")
	return err
}
