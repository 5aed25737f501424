package control

import (
	"math"
	"strings"
	"testing"
)

// TestPlan checks the plans of a few demands against sums done by hand.
func TestPlan(t *testing.T) {
	base := Demand{Calls: 1000, Minutes: 2, Contacts: 1_000_000, Days: 90, Cores: 4, Recording: "wav"}
	s, err := base.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if s.CallsPerDay != 300_000 || s.Nodes != 5 || s.CallsPerNode != 250 || s.DBConns != 5*nodeConns+spareConns {
		t.Errorf("%+v", s)
	}
	if want := 300_000.0 * 90 * 120 * wavRate; s.Bucket != want {
		t.Errorf("bucket %v, want %v", s.Bucket, want)
	}
	for name, row := range map[string]struct {
		change func(d *Demand)
		check  func(n Sizing) bool
	}{
		"one call needs two nodes, so that one is spare": {func(d *Demand) { d.Calls = 1 }, func(n Sizing) bool { return n.Nodes == 2 && n.CallsPerNode == 1 }},
		"the nodes without the spare one hold all calls": {func(d *Demand) { d.Calls = 4001 }, func(n Sizing) bool { return (n.Nodes-1)*n.CallsPerNode >= 4001 }},
		"no recordings need no bucket": {func(d *Demand) { d.Recording = "none" }, func(n Sizing) bool {
			return n.Bucket == 0 && n.NodeDisk == baseDisk && n.NodeUp < s.NodeUp
		}},
		"compressed recordings":            {func(d *Demand) { d.Recording = "opus" }, func(n Sizing) bool { return math.Abs(n.Bucket*8-s.Bucket) < 1 }},
		"calls per day decide, if given":   {func(d *Demand) { d.CallsPerDay = 1_000_000 }, func(n Sizing) bool { return n.DBCores > s.DBCores && n.DBDisk > 3*s.DBDisk }},
		"contacts take disk":               {func(d *Demand) { d.Contacts *= 10 }, func(n Sizing) bool { return n.DBDisk > s.DBDisk }},
		"rows of a few days are all fresh": {func(d *Demand) { d.Days, d.Contacts = 1, 0 }, func(n Sizing) bool { return n.DBDisk < s.DBDisk/45 }},
	} {
		d := base
		row.change(&d)
		if n, err := d.Plan(); err != nil || !row.check(n) {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
	}
}

// TestPlanRefuses checks that the error says which value is out of range and what is accepted.
func TestPlanRefuses(t *testing.T) {
	for want, change := range map[string]func(d *Demand){
		"0 calls: accepted are 1 to":          func(d *Demand) { d.Calls = 0 },
		"-1 calls per day: accepted are":      func(d *Demand) { d.CallsPerDay = -1 },
		"NaN minutes per call: accepted are":  func(d *Demand) { d.Minutes = math.NaN() },
		"-1 contacts: accepted are":           func(d *Demand) { d.Contacts = -1 },
		"0 days: accepted are":                func(d *Demand) { d.Days = 0 },
		"0 cores: accepted are":               func(d *Demand) { d.Cores = 0 },
		"recording: accepted are wav, opus a": func(d *Demand) { d.Recording = "mp3" },
	} {
		d := Demand{Calls: 1, Minutes: 2, Days: 90, Cores: 2, Recording: "wav"}
		change(&d)
		if _, err := d.Plan(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
