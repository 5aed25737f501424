package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

type serveCmd struct{}

// Run serves until SIGTERM or Ctrl-C, then lets the calls finish. A second
// signal ends them.
func (serveCmd) Run(w *world) error {
	c, err := w.config()
	if err != nil {
		return err
	}
	log := w.log(c.LogLevel)
	h, err := build(w, c, log)
	if err != nil {
		return err
	}
	log.Info("parley ready", "url", h.publicURL, "sip", h.ua.Addr().String(), "metrics", "http://"+h.listenM.Addr().String()+"/metrics")
	<-w.Done()
	log.Info("draining: no new calls; a second signal ends those that are on", "for", c.DrainTimeout.String())
	again, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(again, c.DrainTimeout)
	defer cancel()
	h.stop(ctx)
	log.Info("parley stopped")
	return nil
}
