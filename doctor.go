package main

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/parley-voice/parley/control/admincli"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/provider/selftest"
	"github.com/parley-voice/parley/sip"
	"github.com/parley-voice/parley/webrtc/ice"
)

// examination returns what parley doctor needs.
func (e *env) examination() (*admincli.Examination, error) {
	c, err := e.config()
	if err != nil {
		return nil, err
	}
	return &admincli.Examination{
		Config: c, PublicAddr: ice.PublicAddr, Now: time.Now, Out: e.out, Bar: progressBar(e.errs, "checks"),
		Bucket: func() (recording.Bucket, error) { return bucket(c) },
		CheckSigner: func(now time.Time) error {
			_, wrong := signer(c.Stir, nil, now)
			return wrong
		},
		ProbeTrunks: func(ctx context.Context, all []media.Trunk) ([]error, error) { return probeTrunks(ctx, c, all) },
		LookupHost: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return (&net.Resolver{}).LookupNetIP(ctx, "ip", host)
		},
		Providers: func(ctx context.Context, q db.Querier, more map[string]endpoints.Endpoint) (
			selftest.Test, map[string]endpoints.Endpoint, func(), error,
		) {
			stored, names := endpoints.Set{Named: map[string]endpoints.Endpoint{}}, map[string]string{}
			if q != nil {
				if stored, err = providers.ReadEndpoints(ctx, q); err != nil {
					return selftest.Test{}, nil, nil, err
				}
				if names, err = apikeys.OrganizationNames(ctx, q); err != nil {
					return selftest.Test{}, nil, nil, err
				}
			}
			maps.Copy(stored.Named, more)
			set, _ := providers.Merge(c.Endpoints, stored) // parley providers list shows the notes
			p, end := openClients(c, set, names, nil)
			return selftest.Test{Recognizers: p.Recognizers, Models: p.Models, Voices: p.Voices}, set.Named, end, nil
		},
	}, nil
}

// probeTrunks sends OPTIONS to trunks from a separate port. It returns the reason why each trunk is not up, or nil.
func probeTrunks(ctx context.Context, c config.Config, all []media.Trunk) ([]error, error) {
	bind, public, err := c.MediaAddrs()
	if err != nil {
		return nil, err
	}
	keys, err := secure(config.TLSFiles{Cert: c.SIPTLS.Cert, Key: c.SIPTLS.Key, CA: c.SIPTLS.CA})
	if err != nil {
		return nil, err
	}
	ua := &sip.UA{Listen: net.JoinHostPort(bind.String(), "0"), Public: public, TLS: keys}
	if err = ua.Start(); err != nil {
		return nil, err
	}
	reasons := make([]error, len(all))
	var probes sync.WaitGroup
	for n, t := range all {
		probes.Go(func() { reasons[n] = ua.Probe(ctx, t) })
	}
	probes.Wait()
	over, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return reasons, ua.Close(over)
}
