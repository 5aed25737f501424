package main

import (
	"errors"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/api/calls"
	"github.com/parley-voice/parley/api/talkpage"
	"github.com/parley-voice/parley/webrtc/jsclient"
)

// addPages adds the browser client. It also adds the /talk page if PARLEY_TALK_AGENTS names agents.
func (srv *server) addPages(tickets calls.Tickets) (err error) {
	agents := srv.config.Talk
	switch {
	case srv.web.server == nil && len(agents) > 0:
		return configError{errors.New("PARLEY_TALK_AGENTS: requires PARLEY_WEBRTC_UDP_PORT, which is off")}
	case srv.web.server == nil:
		return nil
	}
	srv.web.client = jsclient.Handler()
	if len(agents) > 0 {
		v := &talkpage.Visitors{Agents: agents, DB: srv.db.Pool, Admission: srv.admission, Tickets: tickets}
		srv.web.talk, err = (&talkpage.Page{
			Agents: v.Names(), Notice: srv.config.TalkNotice, Typed: srv.config.TalkTyped, Caller: v, PublicURL: srv.publicURL, Log: srv.log,
		}).Handler()
	}
	return err
}

// page returns the handler of a page or script; nil for any other path.
func (w *web) page(path string) http.Handler {
	switch {
	case path == "/rtc/parley.js" || path == "/rtc/parley.d.ts":
		return w.client
	case path == "/talk" || strings.HasPrefix(path, "/talk/"):
		return w.talk
	}
	return nil
}
