package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/parley-voice/parley/api"
)

// httpServers owns the listeners and the HTTP servers of the API and of the metrics.
type httpServers struct {
	api, metrics                 *http.Server
	apiListener, metricsListener net.Listener
}

// listen opens both listeners. Its errors name the setting.
func (s *httpServers) listen(ctx context.Context, apiAddr, metricsAddr string) (err error) {
	var lc net.ListenConfig
	if s.apiListener, err = lc.Listen(ctx, "tcp", apiAddr); err != nil {
		return fmt.Errorf("PARLEY_HTTP_ADDR: %w", err)
	}
	if s.metricsListener, err = lc.Listen(ctx, "tcp", metricsAddr); err != nil {
		return fmt.Errorf("PARLEY_METRICS_ADDR: %w", err)
	}
	return nil
}

func (s *httpServers) metricsURL() string {
	return "http://" + s.metricsListener.Addr().String() + "/metrics"
}

// start serves requests until close is called.
func (s *httpServers) start(tasks *sync.WaitGroup) {
	tasks.Go(func() { _ = s.api.Serve(api.Listen(s.apiListener)) }) // the error is ErrServerClosed
	tasks.Go(func() { _ = s.metrics.Serve(s.metricsListener) })     // the error is ErrServerClosed
}

// close waits until running requests have finished or ctx ends, and then closes both servers.
func (s *httpServers) close(ctx context.Context) {
	for _, x := range []*http.Server{s.api, s.metrics} {
		if x != nil && x.Shutdown(ctx) != nil {
			_ = x.Close()
		}
	}
	for _, l := range []net.Listener{s.apiListener, s.metricsListener} {
		if l != nil {
			_ = l.Close() // an error means that the server has already closed it
		}
	}
}
