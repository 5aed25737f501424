package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/secretbox"
)

// openDatabase opens the database of c and loads the keys that decrypt its secrets. It waits up to wait for the
// database. conns is the maximum number of connections.
func openDatabase(ctx context.Context, c config.Config, conns int32, wait time.Duration, log *slog.Logger) (*db.DB, error) {
	box := &secretbox.Box{}
	d, err := db.Open(ctx, db.Config{
		URL: string(c.DatabaseURL), DirectURL: string(c.DatabaseDirectURL), DataDir: c.DataDir, MaxConns: conns, Wait: wait,
		Prepare: box.Prepare, Log: log,
	})
	if db.NoRole(err) {
		err = fmt.Errorf("%w; %s", err, asServiceUser)
	}
	if err != nil {
		return nil, err
	}
	keys := secretbox.Source{Keys: c.SealKey, Log: log}
	if c.DatabaseURL == "" {
		keys.File = filepath.Join(c.DataDir, "seal.key")
	}
	if err = box.Load(ctx, d.Pool, keys); err != nil {
		d.Close()
		if _, wrong := errors.AsType[*secretbox.UnknownKeyError](err); wrong {
			return nil, configError{err}
		}
		return nil, err
	}
	return d, nil
}

func bucket(c config.Config) (recording.Bucket, error) {
	return recording.Open(c.BucketURL, filepath.Join(c.DataDir, "bucket"), c.S3)
}
