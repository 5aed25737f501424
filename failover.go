package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/failover"
	"github.com/parley-voice/parley/control/journal"
	"github.com/parley-voice/parley/control/store"
)

// openJournal opens the journal of sent requests. It also opens the monitor that detects whether the database was reset
// to an earlier state.
func (srv *server) openJournal(ctx context.Context, at control.NodeID, dir string) error {
	key, err := store.SharedKey(ctx, srv.db.Pool, "journal")
	if err != nil {
		return err
	}
	j, err := journal.Open(filepath.Join(dir, "journal"))
	if err != nil {
		return err
	}
	srv.failover = &failover.Monitor{Pool: srv.db.DialPool, Journal: j, Node: at, Key: key, Lease: srv.config.Lease, Log: srv.log}
	srv.keys.Hash = func(scope, key string) [16]byte { return srv.failover.KeyHash(scope, key) }
	return nil
}

// announceEnd marks this node as ended, so that other nodes do not wait for its journal.
func (srv *server) announceEnd() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := srv.failover.Leave(ctx); err != nil {
		srv.log.Warn("failed to mark this node as ended", "err", err)
	}
}
