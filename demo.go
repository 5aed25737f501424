package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/sip/siptest"
)

type demoCmd struct {
	Once bool `help:"Exit after the call."`
}

// Run places one real call over SIP and RTP on this machine, through the HTTP
// API, and shows it while it happens.
func (d demoCmd) Run(w *world) error {
	c, err := demoConfig(w)
	if err != nil {
		return err
	}
	s := &demo.Show{Out: w.out, Colour: isTerminal(w.out)}
	s.Title(c.DataDir)
	carrier := demo.Carrier()
	if err = carrier.Start(); err != nil {
		return fmt.Errorf("carrier: %w", err)
	}
	defer func() { _ = carrier.Close() }() // loopback only
	receiver, err := demo.StartReceiver(w)
	if err != nil {
		return fmt.Errorf("webhook receiver: %w", err)
	}
	defer receiver.Close()
	h, err := build(w, c, w.log(c.LogLevel))
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		h.stop(ctx)
	}()
	key, err := d.furnish(w, h, carrier, receiver)
	if err != nil {
		return err
	}
	s.Stage(carrier.Addr().String(), h.publicURL)
	if err = s.Call(w, &demo.Client{URL: h.publicURL, Key: key}, receiver, h.config.DataDir); err != nil {
		return err
	}
	if d.Once {
		return nil
	}
	var password string
	if c.Dashboard {
		if password, err = demoOperator(w, h); err != nil {
			return err
		}
	}
	s.GoOn(h.publicURL, demo.Pages{Talk: h.web.talk != nil, Operator: demo.Operator, Password: password}, "http://"+h.listenM.Addr().String()+"/metrics", key)
	<-w.Done()
	return nil
}

// demoConfig is the operator's configuration, on this machine only and with
// free ports where the usual ones are taken.
func demoConfig(w *world) (config.Config, error) {
	c, err := w.config()
	if err != nil {
		return c, err
	}
	d := config.Default()
	if c.DataDir == d.DataDir {
		c.DataDir = "./.parley-demo"
	}
	if c.DataDir, err = demo.Reachable(c.DataDir); err != nil {
		return c, err
	}
	if c.LogLevel == d.LogLevel {
		c.LogLevel = "error"
	}
	for _, addr := range []*string{&c.HTTPAddr, &c.MetricsAddr} {
		*addr = demo.FreeAddr(w, "tcp", *addr)
	}
	c.SIPAddr = demo.FreeAddr(w, "udp", c.SIPAddr)
	if addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(c.WebRTC.UDP)); c.WebRTC.UDP > 0 && demo.FreeAddr(w, "udp", addr) != addr {
		c.WebRTC.UDP = 0
	}
	c.AllowInsecureWebhooks = true
	if c.WebRTC.UDP != config.Off {
		c.Talk = []config.TalkAgent{{Org: "demo", Name: "demo"}}
	}
	return c, nil
}

// furnish brings in the demo's organization and a key for it.
func (d demoCmd) furnish(ctx context.Context, h *house, carrier *siptest.Carrier, receiver *demo.Receiver) (string, error) {
	file := fmt.Sprintf(demo.File, receiver.Addr(), demo.Secret, carrier.Addr())
	spec, err := apply.Parse(strings.NewReader(file))
	if err != nil {
		return "", err
	}
	if err = apply.Apply(ctx, h.db.Pool, spec, apply.Options{AllowInsecure: true}); err != nil {
		return "", err
	}
	org, err := access.FindOrganization(ctx, h.db.Pool, "demo")
	if err != nil {
		return "", err
	}
	_, secret, err := access.CreateKey(ctx, h.db.Pool, access.Key{OrgID: org, Name: "demo", RateLimit: access.RateOff})
	return string(secret), err
}
