package main

import (
	"github.com/parley-voice/parley/api"
	"github.com/parley-voice/parley/api/campaigns"
	"github.com/parley-voice/parley/campaigns/desk"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/store"
)

// openCampaigns builds the face of campaigns beside that of calls.
func (h *house) openCampaigns(server *api.Server, key []byte) error {
	markets := map[string]*market.Package{}
	for _, code := range market.Codes() {
		p, err := market.Load(code)
		if err != nil {
			return err
		}
		markets[code] = p
	}
	listed := &store.Store{Pool: h.db.Pool}
	server.Campaigns = &campaigns.Campaigns{
		Desk:  &desk.Desk{Pool: h.db.Pool, Store: listed, Bucket: h.spool.Bucket, Markets: markets},
		Store: listed, Keys: h.keys, Schemas: server.Calls.Schemas, CursorKey: key,
	}
	return nil
}
