package main

import (
	"errors"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/api/calls"
	"github.com/parley-voice/parley/api/talk"
	"github.com/parley-voice/parley/webrtc/client"
)

// showPages makes what browsers load: the client, and /talk where agents are
// named that visitors may talk with.
func (h *house) showPages(tickets calls.Tickets) (err error) {
	agents := h.config.Talk
	switch {
	case h.web.server == nil && len(agents) > 0:
		return configError{errors.New("PARLEY_TALK_AGENTS: set, and PARLEY_WEBRTC_UDP_PORT is off")}
	case h.web.server == nil:
		return nil
	}
	h.web.client = client.Handler()
	if len(agents) > 0 {
		v := &talk.Visitors{Agents: agents, DB: h.db.Pool, Desk: h.desk, Tickets: tickets}
		h.web.talk, err = (&talk.Page{Agents: v.Names(), Caller: v, PublicURL: h.publicURL, Log: h.log}).Handler()
	}
	return err
}

// page is the handler of a path of those pages; nil where it is none.
func (w *web) page(path string) http.Handler {
	switch {
	case path == "/rtc/parley.js" || path == "/rtc/parley.d.ts":
		return w.client
	case path == "/talk" || strings.HasPrefix(path, "/talk/"):
		return w.talk
	}
	return nil
}
