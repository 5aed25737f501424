package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admincli"
)

// planCmd prints how many machines an installation needs.
type planCmd struct {
	Calls       int     `help:"Concurrent calls, up to 1,000,000." required:"" placeholder:"N"`
	CallsPerDay int     `help:"Call attempts per day. The default is as many as fit into ten hours." placeholder:"N"`
	Minutes     float64 `help:"Mean length of a call in minutes." default:"2" placeholder:"N"`
	Contacts    int     `help:"Contacts of all campaigns." default:"0" placeholder:"N"`
	Days        int     `help:"Days for which calls and recordings are kept." default:"90" placeholder:"N"`
	Cores       int     `help:"Cores of a node." default:"4" placeholder:"N"`
	Recording   string  `help:"Format of recordings: wav, opus or none." enum:"wav,opus,none" default:"wav"`
	JSON        bool    `name:"json" help:"Print JSON. Sizes are in bytes, rates in bits per second."`
}

// Run prints the plan.
func (p planCmd) Run(e *env) error {
	s, err := control.Demand{
		Calls: p.Calls, CallsPerDay: p.CallsPerDay, Minutes: p.Minutes, Contacts: p.Contacts, Days: p.Days, Cores: p.Cores,
		Recording: p.Recording,
	}.Plan()
	if err != nil {
		return err
	}
	if p.JSON {
		return admincli.WriteJSON(e.out, s)
	}
	fmt.Fprintf(e.out,
		"%d concurrent calls, %d contacts; %d call attempts per day (%.1f per second in ten hours) of %g min, kept for %d days\n\n",
		s.Calls, s.Contacts, s.CallsPerDay, s.PerSecond, s.Minutes, s.Days)
	t := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "Nodes\t%d, one of them spare: the others take all calls while one is stopped or lost\n", s.Nodes)
	fmt.Fprintf(t, "  calls\tat most %d on a node: PARLEY_MAX_CALLS=%d\n", s.CallsPerNode, s.CallsPerNode)
	fmt.Fprintf(t, "  cores, memory\t%d cores, %s\n", s.Cores, size(s.NodeMemory))
	fmt.Fprintf(t, "  disk\t%s: recordings of two hours wait there if the bucket is down\n", size(s.NodeDisk))
	fmt.Fprintf(t, "  network\t%s out, %s in\n", bits(s.NodeUp), bits(s.NodeDown))
	fmt.Fprintf(t, "PostgreSQL\ta primary, and a synchronous standby of the same size\n")
	fmt.Fprintf(t, "  cores, memory\t%d cores, %s\n", s.DBCores, size(s.DBMemory))
	fmt.Fprintf(t, "  disk\t%s\n", size(s.DBDisk))
	fmt.Fprintf(t, "  connections\t%d: max_connections, or PgBouncer's max_client_conn\n", s.DBConns)
	if s.Bucket > 0 {
		fmt.Fprintf(t, "Bucket\t%s of recordings\n", size(s.Bucket))
	}
	if err = t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(e.out, "\nThis is an estimate from measurements of one machine (docs/sizing.md). Measure yours with parley bench load.")
	return nil
}

// size prints a number of bytes with two digits and a decimal unit.
func size(n float64) string { return scaled(n, "B") }

// bits prints a rate in bit/s.
func bits(n float64) string { return scaled(n, "bit/s") }

func scaled(n float64, unit string) string {
	prefixes := []string{"", "k", "M", "G", "T", "P"}
	i := 0
	for ; n >= 1000 && i+1 < len(prefixes); i++ {
		n /= 1000
	}
	if n < 10 {
		return fmt.Sprintf("%.1f %s%s", n, prefixes[i], unit)
	}
	return fmt.Sprintf("%.0f %s%s", n, prefixes[i], unit)
}
