package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/secretbox"
)

// openDatabase opens the database of c, or creates it, and loads the keys that decrypt its secrets. It waits up to wait
// for the database. conns is the maximum number of connections.
func openDatabase(ctx context.Context, c config.Config, conns int32, wait time.Duration, log *slog.Logger) (*db.DB, error) {
	box := &secretbox.Box{}
	settings := databaseConfig(c, box)
	settings.MaxConns, settings.Wait, settings.Log = conns, wait, log
	d, err := db.Open(ctx, settings)
	if err != nil {
		return nil, explainRole(err)
	}
	if err = box.Load(ctx, d.Pool, sealKeys(c, log)); err != nil {
		d.Close()
		if _, wrong := errors.AsType[*secretbox.UnknownKeyError](err); wrong {
			return nil, configError{err}
		}
		return nil, err
	}
	return d, nil
}

func databaseConfig(c config.Config, box *secretbox.Box) db.Config {
	return db.Config{
		URL: string(c.DatabaseURL), DirectURL: string(c.DatabaseDirectURL), DataDir: c.DataDir, MaxConns: db.MinConns, Prepare: box.Prepare,
	}
}

func sealKeys(c config.Config, log *slog.Logger) secretbox.Source {
	keys := secretbox.Source{Keys: c.SealKey, Log: log}
	if c.DatabaseURL == "" {
		keys.File = filepath.Join(c.DataDir, "seal.key")
	}
	return keys
}

func explainRole(err error) error {
	if db.NoRole(err) {
		return fmt.Errorf("%w; %s", err, asServiceUser)
	}
	return err
}

// errNoTables is returned for a database without the tables of Parley.
var errNoTables = errors.New("the database has no tables yet: start parley serve, which creates them")

// readDatabase opens the database of c and changes nothing: it creates neither a database nor tables nor keys.
func (e *env) readDatabase(c config.Config) (*db.DB, error) {
	box := &secretbox.Box{}
	settings := databaseConfig(c, box)
	if !settings.Exists() {
		return nil, missingDatabase(c)
	}
	settings.KeepSchema = true
	d, err := db.Open(e, settings)
	if err != nil {
		return nil, explainRole(err)
	}
	if err = checkSchema(e, d); err == nil {
		var keys secretbox.Keys
		if keys, err = sealKeys(c, nil).Find(e, d.Pool); err == nil {
			box.SetKeys(keys)
		} else if errors.Is(err, secretbox.ErrNoKey) { // the database has no secrets
			err = nil
		}
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// checkSchema returns an error if the tables are missing, or older than this program.
func checkSchema(ctx context.Context, d *db.DB) error {
	state, err := db.Inspect(ctx, d.Pool, time.Now)
	switch {
	case err != nil:
		return err
	case state.Schema == 0:
		return errNoTables
	case state.Schema < state.Want:
		return fmt.Errorf("the tables have version %d, this program needs %d: start parley serve, which updates them", state.Schema, state.Want)
	default:
		return nil
	}
}

// missingDatabase is the error of commands that need a database but do not create one.
func missingDatabase(c config.Config) error {
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return err
	}
	return configError{fmt.Errorf("no database in %s: name the settings of the server with --config FILE or PARLEY_DATA_DIR; "+
		"parley serve or parley apply creates a new database", dir)}
}

// emptyDatabase opens a new database in a temporary folder. end deletes it.
func (e *env) emptyDatabase(c config.Config) (d *db.DB, end func(), err error) {
	dir, err := os.MkdirTemp("", "parley-plan-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	c.DataDir, c.DatabaseURL, c.DatabaseDirectURL, c.SealKey = dir, "", "", ""
	err = os.Chmod(dir, 0o711) //nolint:gosec // Postgres may run as another user
	if err == nil {
		d, err = openDatabase(e, c, db.MinConns, 0, e.log("error"))
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	return d, func() { d.Close(); remove() }, nil
}

func bucket(c config.Config) (recording.Bucket, error) {
	return recording.Open(c.BucketURL, filepath.Join(c.DataDir, "bucket"), c.S3)
}
