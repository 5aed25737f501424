package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
)

type demoCmd struct {
	Once bool `help:"Exit after the call."`
}

// Run places one real call over SIP and RTP on this machine, through the HTTP API, and prints its progress.
func (d demoCmd) Run(e *env) error {
	c, err := demoConfig(e)
	if err != nil {
		return err
	}
	s := &demo.Show{Out: e.out, Color: isTerminal(e.out)}
	s.Title(c.DataDir)
	carrier := demo.Carrier()
	if err = carrier.Start(); err != nil {
		return fmt.Errorf("carrier: %w", err)
	}
	defer func() { _ = carrier.Close() }() // only loopback addresses
	receiver, err := demo.StartReceiver(e)
	if err != nil {
		return fmt.Errorf("webhook receiver: %w", err)
	}
	defer receiver.Close()
	srv, err := newServer(e, c, e.serverLog(c))
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		srv.stop(ctx)
	}()
	file := fmt.Sprintf(demo.FurnishedFile, receiver.Addr(), demo.Secret, carrier.Addr())
	key, err := createDemo(e, srv.db, file, talkSpeech(c).File())
	if err != nil {
		return err
	}
	s.Participants(carrier.Addr().String(), srv.publicURL)
	if err = s.Call(e, &demo.Client{URL: srv.publicURL, Key: key}, receiver, srv.config.DataDir); err != nil {
		return err
	}
	if d.Once {
		return nil
	}
	var password string
	if c.Dashboard {
		if password, err = demoOperator(e, srv); err != nil {
			return err
		}
	}
	s.NextSteps(srv.publicURL, demo.Pages{
		Talk: srv.web.talk != nil, Notice: talkSpeech(c).Notice(), Operator: demo.Operator, Password: password,
	}, srv.http.metricsURL(), key)
	furnished := make(chan struct{})
	go func() { // takes some seconds, so the page and the first call do not wait for it
		defer close(furnished)
		if err := furnishDemo(e, srv, &demo.Client{URL: srv.publicURL, Key: key}); err != nil && e.Err() == nil {
			fmt.Fprintln(e.errs, "the past calls of the demo could not be written:", err)
		}
	}()
	<-e.Done()
	<-furnished
	return nil
}

// demoConfig returns the operator's settings, restricted to this machine. It replaces ports that are in use by free
// ports.
func demoConfig(e *env) (config.Config, error) {
	c, err := e.config()
	if err != nil {
		return c, err
	}
	if c.DatabaseURL != "" || c.BucketURL != "" { // it writes invented calls, and its node would take calls of other nodes
		return c, errors.New("parley demo has a database and recordings of its own: unset PARLEY_DATABASE_URL and PARLEY_BUCKET_URL")
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
		*addr = demo.FreeAddr(e, "tcp", *addr)
	}
	c.SIPAddr = demo.FreeAddr(e, "udp", c.SIPAddr)
	if addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(c.WebRTC.UDP)); c.WebRTC.UDP > 0 && demo.FreeAddr(e, "udp", addr) != addr {
		c.WebRTC.UDP = 0
	}
	c.AllowInsecureWebhooks = true
	c.LimitLoad = false // other programs may use most of this machine
	if c.WebRTC.UDP != config.Off {
		for _, name := range demo.TalkAgents() {
			c.Talk = append(c.Talk, config.TalkAgent{Org: demo.Organization, Name: name})
		}
		speech := talkSpeech(c)
		c.TalkNotice, c.TalkTyped = strings.Join(speech.Notice(), " "), speech.IsTyped()
	}
	return c, nil
}

// talkSpeech returns the providers of the agents for /talk.
func talkSpeech(c config.Config) demo.Speech {
	_, err := exec.LookPath("espeak-ng")
	return demo.ChooseSpeech(c.Endpoints.Named, err == nil)
}

// createDemo creates the organization of files and returns a new API key.
func createDemo(ctx context.Context, d *db.DB, files ...string) (string, error) {
	name := ""
	for _, file := range files {
		spec, err := apply.Parse(strings.NewReader(file))
		if err == nil {
			err = apply.Apply(ctx, d.Pool, spec, apply.Options{AllowInsecure: true})
		}
		if err != nil {
			return "", err
		}
		name = spec.Organizations[0].Name
	}
	org, err := apikeys.FindOrganization(ctx, d.Pool, name)
	if err != nil {
		return "", err
	}
	_, secret, err := apikeys.CreateKey(ctx, d.Pool, apikeys.Key{OrgID: org, Name: "demo", RateLimit: apikeys.RateOff})
	return string(secret), err
}
