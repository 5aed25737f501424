package main

import "context"

// keepTrunks looks after the trunks for longer than calls are placed, and not
// for as long as SIP is spoken: the carriers are taken leave of.
func (h *house) keepTrunks(ctx context.Context) {
	ctx, quit := context.WithCancel(ctx)
	h.upkeep.Look(ctx) // the first call is signed too
	over := make(chan struct{})
	go func() {
		defer close(over)
		h.upkeep.Run(ctx)
	}()
	h.leave = func() {
		quit()
		<-over
	}
}
