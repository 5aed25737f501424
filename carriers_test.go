package main

import (
	"net/netip"
	"testing"

	"github.com/parley-voice/parley/control/metrics"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/sip"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestCarriers checks the counts of proxies and registrations.
func TestCarriers(t *testing.T) {
	ports, err := rtp.ParsePorts("0-0")
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rtp.NewTransport(&mediaclock.Clock{}, ports, netip.MustParseAddr("127.0.0.1"), netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	carrier := &siptest.Carrier{Listen: "127.0.0.1:0", Media: transport, Registrar: &siptest.Registrar{Status: 403}}
	if err := carrier.Start(); err != nil {
		t.Fatal(err)
	}
	ua := &sip.UA{Listen: "127.0.0.1:0", Media: transport, Meter: meter{metrics.New()}}
	if err := ua.Start(); err != nil {
		t.Fatal(err)
	}
	ua.SetTrunks([]media.Trunk{{Proxy: carrier.Proxy(), Register: true, Username: "u", Password: "p"}})
	eventually(t, "a failed registration at a proxy that is up", func() bool {
		c := carriers(ua)
		return c.Addresses["up"] == 1 && c.Registrations["failed"] == 1
	})
	if err := ua.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := carrier.Close(); err != nil {
		t.Error(err)
	}
}
