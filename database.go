package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/seal"
)

// openDatabase opens the database of a configuration, with the keys to the
// secrets in it. At most conns connections are made; 0 is the usual number.
func openDatabase(ctx context.Context, c config.Config, conns int32, log *slog.Logger) (*db.DB, error) {
	box := &seal.Box{}
	d, err := db.Open(ctx, db.Config{URL: string(c.DatabaseURL), DataDir: c.DataDir, MaxConns: conns, Prepare: box.Prepare, Log: log})
	if err != nil {
		return nil, err
	}
	keys := seal.Source{Keys: c.SealKey, Log: log}
	if c.DatabaseURL == "" {
		keys.File = filepath.Join(c.DataDir, "seal.key")
	}
	if err = box.Load(ctx, d.Pool, keys); err != nil {
		d.Close()
		if _, wrong := errors.AsType[*seal.UnknownKeyError](err); wrong {
			return nil, configError{err}
		}
		return nil, err
	}
	return d, nil
}

// bucket is where recordings are kept.
func bucket(c config.Config) (recording.Bucket, error) {
	return recording.Open(c.BucketURL, filepath.Join(c.DataDir, "bucket"), c.S3)
}
