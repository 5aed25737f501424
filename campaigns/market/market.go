// Package market evaluates a country's law on calls: legal hours, frequency caps,
// callable numbers and required disclosures. The rules are data in the folders us and
// kz, each row with its source. The package is pure, and not legal advice.
package market

import (
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"
)

//go:embed us kz
var data embed.FS

// A Classification is the purpose of a campaign's calls.
type Classification string

// Classifications.
const (
	Marketing      Classification = "marketing"
	Servicing      Classification = "servicing"
	DebtCollection Classification = "debt_collection"
)

// Classifications returns all classifications.
func Classifications() []Classification {
	return []Classification{Marketing, Servicing, DebtCollection}
}

// A Package has the rules of one market. It is immutable and safe for concurrent use.
type Package struct {
	Code    string // "us" or "kz"
	Version string // version of the rules, which is recorded with each decision
	// Region is the country (ISO 3166-1 alpha-2) of numbers without a country code.
	Region string
	// OrganizationWindow reports that the organization's calling window applies in
	// addition to the law.
	OrganizationWindow bool
	// Registry reports that the market has a national do-not-call registry.
	Registry bool
	// RequireTimezone reports that rows of a batch must name their zone if the campaign dials by the contact's zone.
	RequireTimezone bool
	// StaleAfter is the age from which a registry copy is too old.
	StaleAfter time.Duration

	language    string // language of disclosures if the requested one is missing
	disclosures map[string]Disclosure
	areas       map[string]area // areas by area code; only if area codes have locations
	zones       []string        // zones of numbers without an area code
	windows     map[string][]window
	holidays    map[string][]holiday
	caps        []capRow
	locations   map[string]*time.Location
	known       [prefixes]atomic.Uint32 // cache of verdicts by the first digits of a number; see plain.go
}

// A Disclosure has the required statements in one language, with {{agent}} and
// {{organization}} as placeholders.
type Disclosure struct {
	Caller    string // statement of the caller's identity
	Automated string // statement that the voice is automated
	Recording string // statement that the call is recorded; only for recorded calls
	OptOut    string `yaml:"opt_out"` // statement of how to opt out; if it names a single key, that key opts out
	// Phrases are opt-out requests in that language.
	Phrases []string `yaml:"opt_out_phrases"`
}

// Key returns the key that OptOut names: a digit, * or #; empty for none or several.
func (d Disclosure) Key() string {
	keys := strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789*#", r) {
			return r
		}
		return -1
	}, d.OptOut)
	if len(keys) != 1 {
		return ""
	}
	return keys
}

// Phrases returns the opt-out requests in all languages of the package, because the
// callee may speak another language than the agent.
func (p *Package) Phrases() []string {
	var all []string
	for _, language := range slices.Sorted(maps.Keys(p.disclosures)) {
		all = append(all, p.disclosures[language].Phrases...)
	}
	return all
}

// Text returns the spoken disclosure of an agent for an organization.
func (d Disclosure) Text(agent, organization string, recorded bool) string {
	parts := []string{d.Caller, d.Automated}
	if recorded {
		parts = append(parts, d.Recording)
	}
	return strings.NewReplacer("{{agent}}", agent, "{{organization}}", organization).Replace(strings.Join(append(parts, d.OptOut), " "))
}

// ErrUnknown is returned for an unknown package code.
var ErrUnknown = errors.New("no such market package")

// Codes returns the codes of the built-in packages.
func Codes() []string { return []string{"kz", "us"} }

// Load returns a built-in package.
func Load(code string) (*Package, error) {
	if !slices.Contains(Codes(), code) {
		return nil, fmt.Errorf("%w: %q; there are %s", ErrUnknown, code, strings.Join(Codes(), " and "))
	}
	p, err := Read(Files(code))
	if err != nil {
		return nil, fmt.Errorf("market package %s: %w", code, err)
	}
	return p, nil
}

// FileNames returns the names of a package's files. areacodes.csv is optional: without it, all numbers have the zones
// of package.yaml.
func FileNames() []string {
	return []string{"package.yaml", "areacodes.csv", "windows.csv", "holidays.csv", "caps.csv"}
}

// Files returns the files of a built-in package by name.
func Files(code string) map[string]string {
	all := map[string]string{}
	for _, name := range FileNames() {
		if text, err := data.ReadFile(code + "/" + name); err == nil {
			all[name] = string(text)
		}
	}
	return all
}

// header is the content of package.yaml.
type header struct {
	Code, Version, Region string
	OrganizationWindow    bool `yaml:"organization_window"`
	Registry              bool
	RequireTimezone       bool          `yaml:"require_timezone"`
	StaleAfter            time.Duration `yaml:"stale_after"`
	Zones                 []string
	// Language is the language of disclosures if there are none in the language of the call.
	Language    string
	Disclosures map[string]Disclosure
}

func (h header) check() error {
	switch _, ok := h.Disclosures[h.Language]; {
	case !slices.Contains(Codes(), h.Code):
		return fmt.Errorf("code %q: use %s", h.Code, strings.Join(Codes(), " or "))
	case !strings.HasPrefix(h.Version, h.Code+"-") || len(h.Version) > 64:
		return fmt.Errorf("version %q: must begin with %s-", h.Version, h.Code)
	case len(h.Region) != 2:
		return fmt.Errorf("region %q: use two letters", h.Region)
	case !ok:
		return fmt.Errorf("language %q has no disclosures", h.Language)
	}
	for language, d := range h.Disclosures {
		if d.Caller == "" || d.Automated == "" || d.Recording == "" || d.OptOut == "" {
			return fmt.Errorf("disclosures.%s: caller, automated, recording and opt_out are all required", language)
		}
	}
	return nil
}

// Read parses a package from its files by name.
func Read(files map[string]string) (*Package, error) {
	text, ok := files["package.yaml"]
	if !ok {
		return nil, errors.New("package.yaml is missing")
	}
	var h header
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&h); err != nil {
		return nil, fmt.Errorf("package.yaml: %w", err)
	}
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("package.yaml: %w", err)
	}
	p := &Package{
		Code: h.Code, Version: h.Version, Region: h.Region, OrganizationWindow: h.OrganizationWindow,
		Registry: h.Registry, RequireTimezone: h.RequireTimezone, StaleAfter: h.StaleAfter,
		language: h.Language, disclosures: h.Disclosures, zones: slices.Compact(slices.Sorted(slices.Values(h.Zones))),
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
		text, ok := files[t.file]
		if !ok && t.optional {
			continue
		}
		if !ok {
			return nil, fmt.Errorf("%s is missing", t.file)
		}
		if err := readTable(t.file, text, t.row); err != nil {
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

// Languages returns the languages of the disclosures (BCP 47), sorted.
func (p *Package) Languages() []string {
	return slices.Sorted(maps.Keys(p.disclosures))
}

// Disclosure returns the statements in a language (BCP 47, the region is ignored). If the package has none in that language,
// Disclosure returns those in the package's own language.
func (p *Package) Disclosure(language string) Disclosure {
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	if d, ok := p.disclosures[base]; ok {
		return d
	}
	return p.disclosures[p.language]
}

// Areas returns the area codes of the country, sorted; none without areacodes.csv.
func (p *Package) Areas() []string { return slices.Sorted(maps.Keys(p.areas)) }

// A row is one line of a table, by column.
type row map[string]string

// readTable reads CSV with a header line; lines that begin with # are comments.
func readTable(name, text string, each func(row) error) error {
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	r.LazyQuotes = false
	all, err := r.ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(all) == 0 {
		return fmt.Errorf("%s: the header line is missing", name)
	}
	for i, cells := range all[1:] {
		v := row{}
		for c, cell := range cells {
			v[all[0][c]] = strings.TrimSpace(cell)
		}
		if err := each(v); err != nil {
			return fmt.Errorf("%s, row %d: %w", name, i+1, err)
		}
	}
	return nil
}
