package simulate

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/simulate/oracle"
)

func smallConfig() Config {
	return Config{Seed: 1, Contacts: 12_000, Campaigns: 40, Begin: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Years: 2}
}

func laws() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, code := range market.Codes() {
		all[code] = market.Files(code)
	}
	return all
}

// runAndJudge runs a simulation and its oracle.
func runAndJudge(t *testing.T, w Config) (Figures, oracle.Report) {
	t.Helper()
	dir := t.TempDir()
	f, err := w.Run(t.Context(), dir, func(float64) {})
	if err != nil {
		t.Fatal(err)
	}
	report, err := oracle.Judge(dir, laws())
	if err != nil {
		t.Fatal(err)
	}
	return f, report
}

// TestSimulationIsLawful checks that two years of campaigns over all states and Kazakhstan have no fault.
func TestSimulationIsLawful(t *testing.T) {
	f, r := runAndJudge(t, smallConfig())
	if r.Wrong() > 0 {
		t.Errorf("%+v", r)
	}
	if f.Dials != r.Dials || r.Dials < 12_000 || r.Terminal < 8_000 || r.Terminal+r.Closed+r.Waiting != 12_000 {
		t.Errorf("%+v of %+v", r, f)
	}
}

// changedPackage returns the US package with one changed cell of its windows.
func changedPackage(t *testing.T, from, to string) *market.Package {
	t.Helper()
	files := market.Files("us")
	if !strings.Contains(files["windows.csv"], from) {
		t.Fatalf("windows.csv has no %q", from)
	}
	files["windows.csv"] = strings.Replace(files["windows.csv"], from, to, 1)
	p, err := market.Read(files)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWideWindowIsDetected checks that a window that is one minute too wide is detected, at either end.
func TestWideWindowIsDetected(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"US,all,,,08:00-21:00", "US,all,,,07:59-21:00"},
		{"TX,marketing,,,09:00-21:00", "TX,marketing,,,08:59-21:00"},
		{"US,all,,,08:00-21:00", "US,all,,,08:00-21:01"},
	} {
		w := smallConfig()
		w.Packages = map[string]*market.Package{"us": changedPackage(t, c.from, c.to)}
		_, r := runAndJudge(t, w)
		if r.Unlawful == 0 {
			t.Errorf("%s instead of %s: no fault found in %d calls", c.to, c.from, r.Dials)
		}
	}
}
