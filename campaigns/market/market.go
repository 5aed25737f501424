// Package market holds what the law of a country says about calls: when they
// may be made, how often, to which numbers, and what must be said in them. The
// rules are data, in the folders us and kz, each row with its source; this
// package weighs them. It is pure, and no legal advice.
package market

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

//go:embed us kz
var data embed.FS

// A Classification is what a campaign's calls are for.
type Classification string

// Classifications.
const (
	Marketing      Classification = "marketing"
	Servicing      Classification = "servicing"
	DebtCollection Classification = "debt_collection"
)

// Classifications lists all.
func Classifications() []Classification {
	return []Classification{Marketing, Servicing, DebtCollection}
}

// A Package is the rules of one market. It does not change once it is loaded,
// and any number of goroutines may use it.
type Package struct {
	Code    string // us or kz
	Version string // of the rules; every decision is recorded with it
	// Region is the country, ISO 3166-1 alpha-2, of numbers that name none.
	Region string
	// OrganizationWindow tells that an organization's own calling window bounds
	// its calls, beside the law.
	OrganizationWindow bool
	// Registry tells that the market has a national do-not-call registry.
	Registry bool
	// RequireTimezone tells that a batch's rows must name their zone where a
	// campaign dials by it.
	RequireTimezone bool
	// StaleAfter is the age from which a copy of the registry is too old.
	StaleAfter time.Duration

	disclosures map[string]Disclosure
	areas       map[string]area // by area code; only where numbers tell where they are
	zones       []string        // of numbers that do not tell
	windows     map[string][]window
	holidays    map[string][]holiday
	caps        []capRow
	locations   map[string]*time.Location
}

// A Disclosure is what a caller must say of itself, in one language, with
// {{agent}} and {{organization}} for their names.
type Disclosure struct {
	Caller    string // who calls
	Automated string // that the voice is not a person's
	Recording string // that the call is recorded, where it is
	OptOut    string `yaml:"opt_out"` // how not to be called again
}

// Text is the disclosure as it is spoken.
func (d Disclosure) Text(recorded bool) string {
	parts := []string{d.Caller, d.Automated}
	if recorded {
		parts = append(parts, d.Recording)
	}
	return strings.Join(append(parts, d.OptOut), " ")
}

// ErrUnknown tells that there is no package of that code.
var ErrUnknown = errors.New("no such market package")

// Codes lists the packages there are.
func Codes() []string { return []string{"kz", "us"} }

// Load reads a package.
func Load(code string) (*Package, error) {
	if !slices.Contains(Codes(), code) {
		return nil, fmt.Errorf("%w: %q; there are %s", ErrUnknown, code, strings.Join(Codes(), " and "))
	}
	dir, err := fs.Sub(data, code)
	if err != nil {
		return nil, fmt.Errorf("market package %s: %w", code, err)
	}
	p, err := read(dir)
	if err != nil {
		return nil, fmt.Errorf("market package %s: %w", code, err)
	}
	return p, nil
}

// header is package.yaml.
type header struct {
	Code, Version, Region string
	OrganizationWindow    bool `yaml:"organization_window"`
	Registry              bool
	RequireTimezone       bool          `yaml:"require_timezone"`
	StaleAfter            time.Duration `yaml:"stale_after"`
	Zones                 []string
	Disclosures           map[string]Disclosure
}

func read(dir fs.FS) (*Package, error) {
	f, err := dir.Open("package.yaml")
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	var h header
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(&h); err != nil {
		return nil, fmt.Errorf("package.yaml: %w", err)
	}
	p := &Package{
		Code: h.Code, Version: h.Version, Region: h.Region, OrganizationWindow: h.OrganizationWindow,
		Registry: h.Registry, RequireTimezone: h.RequireTimezone, StaleAfter: h.StaleAfter,
		disclosures: h.Disclosures, zones: h.Zones,
		areas: map[string]area{}, windows: map[string][]window{}, holidays: map[string][]holiday{},
		locations: map[string]*time.Location{},
	}
	for _, t := range []struct {
		file     string
		optional bool
		row      func(row) error
	}{
		{"areacodes.csv", true, p.addArea},
		{"windows.csv", false, p.addWindow},
		{"holidays.csv", false, p.addHoliday},
		{"caps.csv", false, p.addCap},
	} {
		if err := table(dir, t.file, t.row); err != nil && (!t.optional || !errors.Is(err, fs.ErrNotExist)) {
			return nil, err
		}
	}
	for _, zone := range p.zones {
		if err := p.addLocation(zone); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Package) addLocation(zone string) error {
	if p.locations[zone] != nil {
		return nil
	}
	l, err := time.LoadLocation(zone)
	if err != nil {
		return fmt.Errorf("zone %q: %w", zone, err)
	}
	p.locations[zone] = l
	return nil
}

// Languages lists the languages of the disclosures, BCP 47, in order.
func (p *Package) Languages() []string {
	var all []string
	for l := range p.disclosures {
		all = append(all, l)
	}
	slices.Sort(all)
	return all
}

// Disclosure returns what must be said in a language (BCP 47), if the package
// knows it. A regional variant is its language.
func (p *Package) Disclosure(language string) (Disclosure, bool) {
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	d, ok := p.disclosures[base]
	return d, ok
}
