package control

import (
	"errors"
	"fmt"
	"math"
)

// Measured costs. docs/sizing.md has the measurements. Some values include a reserve, as their comments say.
const (
	callsPerCore    = 75      // conversations on a core of a node: about half of its time
	nodeMemory      = 128e6   // bytes of a node without calls
	callMemory      = 900e3   // bytes of a call
	wavRate         = 32e3    // bytes per second of a recording
	opusRate        = 4e3     // the same, compressed
	baseDisk        = 10e9    // bytes of a node's disk for the program, logs and journals
	spoolTime       = 2 * 60  // minutes of recordings for which a node's disk has room while the bucket is down
	rtpBandwidth    = 87.2e3  // bit/s of G.711 in one direction with the headers of RTP, UDP, IP and Ethernet
	streamBandwidth = 100e3   // bit/s of audio to or from a provider, with the headers of TCP and WebSocket
	callRows        = 9e3     // bytes of rows of a call, with indexes
	freshRows       = 7e3     // further bytes while its deliveries and keys are kept
	freshDays       = 7       // days for which they are kept
	contactRows     = 1.5e3   // bytes of rows of a contact, with indexes
	dbCallCost      = 0.040   // seconds of CPU time of the database for a call
	dbUse           = 0.5     // planned use of the database's cores
	nodeConns       = 13      // connections of a node to the database
	spareConns      = 30      // connections for commands and other clients
	callingDay      = 10 * 60 // minutes in which the calls of a day are placed
)

// A Demand describes what an installation must hold.
type Demand struct {
	Calls       int     `json:"calls"`         // concurrent calls
	CallsPerDay int     `json:"calls_per_day"` // call attempts per day; 0 means as many as fit into ten hours
	Minutes     float64 `json:"minutes"`       // mean length of a call
	Contacts    int     `json:"contacts"`      // contacts of all campaigns
	Days        int     `json:"days"`          // days for which calls and recordings are kept
	Cores       int     `json:"cores"`         // cores of a node
	Recording   string  `json:"recording"`     // wav, opus or none
}

// A Sizing is the installation for a demand. Sizes are in bytes.
type Sizing struct {
	Demand
	Nodes        int     `json:"nodes"`          // one of them is spare
	CallsPerNode int     `json:"calls_per_node"` // maximum number of calls of a node while all nodes run
	NodeMemory   float64 `json:"node_memory"`    // memory of a node
	NodeDisk     float64 `json:"node_disk"`      // data directory of a node
	NodeUp       float64 `json:"node_up"`        // bit/s that a node sends
	NodeDown     float64 `json:"node_down"`      // bit/s that a node receives
	PerSecond    float64 `json:"per_second"`     // call attempts per second
	DBCores      int     `json:"db_cores"`
	DBMemory     float64 `json:"db_memory"`
	DBDisk       float64 `json:"db_disk"`
	DBConns      int     `json:"db_conns"`
	Bucket       float64 `json:"bucket"` // recordings
}

// check returns an error if a value is out of range.
func (d Demand) check() error {
	for _, of := range []struct {
		what               string
		value, least, most float64
	}{
		{"calls", float64(d.Calls), 1, 1e6},
		{"calls per day", float64(d.CallsPerDay), 0, 1e9},
		{"minutes per call", d.Minutes, 0.1, 120},
		{"contacts", float64(d.Contacts), 0, 1e9},
		{"days", float64(d.Days), 1, 3650},
		{"cores", float64(d.Cores), 1, 256},
	} {
		if math.IsNaN(of.value) || of.value < of.least || of.value > of.most {
			return fmt.Errorf("%.10g %s: accepted are %.10g to %.10g", of.value, of.what, of.least, of.most)
		}
	}
	return nil
}

// Plan returns the installation for a demand.
func (d Demand) Plan() (Sizing, error) {
	if err := d.check(); err != nil {
		return Sizing{}, err
	}
	rate, ok := map[string]float64{"wav": wavRate, "opus": opusRate, "none": 0}[d.Recording]
	if !ok {
		return Sizing{}, errors.New("recording: accepted are wav, opus and none")
	}
	if d.CallsPerDay == 0 {
		d.CallsPerDay = int(float64(d.Calls) * callingDay / d.Minutes)
	}
	needed := (d.Calls + d.Cores*callsPerCore - 1) / (d.Cores * callsPerCore)
	s := Sizing{Demand: d, Nodes: needed + 1}
	// The spare node takes calls too. When a node fails, the others take its calls.
	s.CallsPerNode = (d.Calls + needed - 1) / needed
	n := float64(s.CallsPerNode)
	s.NodeMemory = 2 * (nodeMemory + n*callMemory) // half of it is free for the file cache and for garbage
	s.NodeDisk = baseDisk
	if rate > 0 {
		s.NodeDisk += n * spoolTime * 60 * wavRate // compressed only after the call
	}
	s.NodeUp = n * (rtpBandwidth + streamBandwidth + rate*8)
	s.NodeDown = n * (rtpBandwidth + streamBandwidth)
	s.PerSecond = float64(d.CallsPerDay) / callingDay / 60
	s.DBCores = max(2, int(math.Ceil(s.PerSecond*dbCallCost/dbUse)))
	perDay := float64(d.CallsPerDay)
	s.DBDisk = 2 * (perDay*float64(d.Days)*callRows + perDay*float64(min(d.Days, freshDays))*freshRows + float64(d.Contacts)*contactRows)
	s.DBMemory = 4e9 * float64(s.DBCores)
	s.DBConns = s.Nodes*nodeConns + spareConns
	s.Bucket = perDay * float64(d.Days) * d.Minutes * 60 * rate
	return s, nil
}
