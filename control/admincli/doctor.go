package admincli

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/provider/selftest"
)

// checkTime is how long one check may take.
const checkTime = 5 * time.Second

// Level is the severity of a Finding.
type Level string

// Levels.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Error   Level = "error"
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Result string `json:"result"`
	Fix    string `json:"fix,omitempty"` // what to do; empty if Level is OK
}

// Doctor checks the settings, and the machine and the services that they refer to.
type Doctor struct {
	File string `short:"f" help:"Also check an operator's file that is not applied yet." placeholder:"FILE"`
	STUN string `name:"stun" help:"STUN server that reports the public address. Default: the first of PARLEY_STUN_URLS." placeholder:"HOST:PORT"`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Examination holds what the checks of Doctor need.
type Examination struct {
	Config config.Config
	// Bucket opens the bucket of recordings.
	Bucket func() (recording.Bucket, error)
	// CheckSigner loads the key and the certificate that sign calls.
	CheckSigner func(now time.Time) error
	// PublicAddr asks a STUN server for the public address of a socket.
	PublicAddr func(ctx context.Context, bind netip.Addr, server string) (local, public netip.AddrPort, err error)
	// ProbeTrunks sends OPTIONS to trunks. It returns the reason why each does not answer, or nil.
	ProbeTrunks func(ctx context.Context, all []media.Trunk) ([]error, error)
	// Providers returns the test of the providers in the settings, of more, and, if q is not nil, in the database. all are
	// the operator's endpoints by name.
	Providers func(ctx context.Context, q db.Querier, more map[string]endpoints.Endpoint) (
		test selftest.Test, all map[string]endpoints.Endpoint, end func(), err error)
	// LookupHost returns the addresses of a host name.
	LookupHost func(ctx context.Context, host string) ([]netip.Addr, error)
	// Now is the clock of this machine.
	Now func() time.Time
	Out io.Writer
	// Bar draws how many checks have ended.
	Bar func(done, all int)
}

// Run runs all checks and prints the findings. It returns an error if a finding is an error.
func (c Doctor) Run(ctx context.Context, x *Examination) error {
	all := x.run(ctx, c)
	counts := map[Level]int{}
	for _, f := range all {
		counts[f.Level]++
	}
	if c.JSON {
		if err := WriteJSON(x.Out, map[string]any{"findings": all, "errors": counts[Error], "warnings": counts[Warning]}); err != nil {
			return err
		}
	} else {
		for _, f := range all {
			fmt.Fprintf(x.Out, "%-8s %-14s %s\n", f.Level, f.Check, f.Result)
			if f.Fix != "" {
				fmt.Fprintf(x.Out, "%-8s %-14s → %s\n", "", "", f.Fix)
			}
		}
		fmt.Fprintf(x.Out, "\n%d ok, %d warnings, %d errors\n", counts[OK], counts[Warning], counts[Error])
	}
	if counts[Error] > 0 {
		return fmt.Errorf("errors found: %d", counts[Error])
	}
	return ctx.Err()
}

// run runs the checks concurrently and returns their findings in a fixed order.
func (x *Examination) run(ctx context.Context, c Doctor) (all []Finding) {
	s := x.openStored(ctx)
	defer s.close()
	s.fileName = c.File
	if c.File != "" {
		s.file, s.fileErr = ReadSpec(c.File)
	}
	checks := []func(context.Context) []Finding{
		x.checkSettings, s.checkFile, x.checkSockets, x.checkRTP,
		func(ctx context.Context) []Finding { return x.checkAddress(ctx, c.STUN) },
		x.checkCertificates, x.checkDisk, x.checkFiles, x.checkClock, x.checkBucket,
		s.checkDatabase, s.checkSealKey, s.checkTrunks, s.checkProviders,
	}
	found := make([][]Finding, len(checks))
	var tasks sync.WaitGroup
	var ended atomic.Int64
	for n, check := range checks {
		tasks.Go(func() {
			found[n] = check(ctx)
			ended.Add(1)
		})
	}
	over := make(chan struct{})
	go func() { // ends with the checks
		tasks.Wait()
		close(over)
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for wait := true; wait; {
		select {
		case <-tick.C:
		case <-over:
			wait = false
		}
		x.Bar(int(ended.Load()), len(checks))
	}
	for _, f := range found {
		all = append(all, f...)
	}
	return all
}
