package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
)

type serveCmd struct{}

// notifySystemd reports a state of the process to systemd (sd_notify) if it runs as a service of type notify.
func notifySystemd(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("failed to notify systemd", "state", state, "err", err)
	}
}

const (
	// savingGCPercent is the growth of the heap that starts a garbage collection. Most memory of a call is in buffers
	// without pointers, which the collector does not read, so collecting twice as often costs little.
	savingGCPercent  = 50
	defaultGCPercent = 100 // default of the Go runtime
)

// saveMemory applies savingGCPercent unless the environment variable GOGC has another value than the default.
func saveMemory() {
	if before := debug.SetGCPercent(savingGCPercent); before != defaultGCPercent {
		debug.SetGCPercent(before)
	}
}

// Run serves until SIGTERM or Ctrl-C, and then waits until live calls have ended. A second signal ends them. SIGHUP
// reloads the settings.
func (serveCmd) Run(e *env) error {
	c, err := e.config()
	if err != nil {
		return err
	}
	log := e.serverLog(c)
	saveMemory()
	signal.Ignore(syscall.SIGPIPE) // a closed log pipe must not end calls
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	srv, err := newServer(e, c, log)
	if err != nil {
		return err
	}
	var reloads sync.WaitGroup
	defer reloads.Wait()
	ended := make(chan struct{})
	defer close(ended)
	reloads.Go(func() { srv.reloadOn(hangups, ended, e) })
	notifySystemd(log, daemon.SdNotifyReady)
	log.Info("parley ready", "url", srv.publicURL, "sip", srv.ua.Addr().String(), "metrics", srv.http.metricsURL())
	<-e.Done()
	notifySystemd(log, daemon.SdNotifyStopping)
	log.Info("draining: no new calls; a second signal ends live calls", "timeout", c.DrainTimeout.String())
	again, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(again, c.DrainTimeout)
	defer cancel()
	srv.stop(ctx)
	log.Info("parley stopped")
	return nil
}
