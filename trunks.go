package main

import (
	"context"
	"time"
)

// runTrunks starts the trunk reconciler. The reconciler runs until all calls have ended. It stops before SIP closes, so
// that it can unregister from carriers.
func (srv *server) runTrunks(ctx context.Context) {
	ctx, quit := context.WithCancel(ctx)
	srv.trunkReconciler.Reconcile(ctx) // loads the attestation levels, so that even the first INVITE is signed
	over := make(chan struct{})
	go func() {
		defer close(over)
		srv.trunkReconciler.Run(ctx)
	}()
	srv.stopTrunks = func() {
		quit()
		<-over
	}
}

// pausedTrunks returns the trunks whose carriers asked for a pause: the end of the pause by trunk id. This server sends
// them no calls until then.
func (srv *server) pausedTrunks() map[string]time.Time {
	if !srv.ua.AnyPaused() {
		return nil
	}
	all := map[string]time.Time{}
	for id, line := range srv.trunkReconciler.Trunks() {
		if until, paused := srv.ua.Paused(line); paused {
			all[id] = until
		}
	}
	return all
}

// isPaused reports whether the carrier of a trunk asked for a pause.
func (srv *server) isPaused(trunkID string) bool {
	line, known := srv.trunkReconciler.Trunks()[trunkID]
	if !known || !srv.ua.AnyPaused() {
		return false
	}
	_, paused := srv.ua.Paused(line)
	return paused
}
