// Package market holds what the law of a country says about calls: when they
// may be made, how often, to which numbers, and what must be said in them. The
// rules are data, in the folders us and kz, each row with its source; this
// package weighs them. It is pure, and no legal advice.
package market

import (
	"embed"
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

	language    string // of disclosures, where there are none in another
	disclosures map[string]Disclosure
	areas       map[string]area // by area code; only where numbers tell where they are
	zones       []string        // of numbers that do not tell
	windows     map[string][]window
	holidays    map[string][]holiday
	caps        []capRow
	locations   map[string]*time.Location
	known       [prefixes]atomic.Uint32 // verdicts that were asked; as good as empty
}

// A Disclosure is what a caller must say of itself, in one language, with
// {{agent}} and {{organization}} for their names.
type Disclosure struct {
	Caller    string // who calls
	Automated string // that the voice is not a person's
	Recording string // that the call is recorded, where it is
	OptOut    string `yaml:"opt_out"` // how not to be called again; a single key in it is pressed for that
	// Phrases ask not to be called again, in that language.
	Phrases []string `yaml:"opt_out_phrases"`
}

// Key is the key that OptOut names, as a digit, * or #; empty where it names none,
// or several.
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

// Phrases ask not to be called again, in all languages of the package: who is
// called may speak another than the agent does.
func (p *Package) Phrases() []string {
	var all []string
	for _, language := range slices.Sorted(maps.Keys(p.disclosures)) {
		all = append(all, p.disclosures[language].Phrases...)
	}
	return all
}

// Text is the disclosure as it is spoken, by an agent for an organization.
func (d Disclosure) Text(agent, organization string, recorded bool) string {
	parts := []string{d.Caller, d.Automated}
	if recorded {
		parts = append(parts, d.Recording)
	}
	return strings.NewReplacer("{{agent}}", agent, "{{organization}}", organization).Replace(strings.Join(append(parts, d.OptOut), " "))
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
	p, err := Read(Files(code))
	if err != nil {
		return nil, fmt.Errorf("market package %s: %w", code, err)
	}
	return p, nil
}

// Names lists the files that a package may have; areacodes.csv is missing where
// numbers do not tell where they are.
func Names() []string {
	return []string{"package.yaml", "areacodes.csv", "windows.csv", "holidays.csv", "caps.csv"}
}

// Files are the files of a package of the program, by name.
func Files(code string) map[string]string {
	all := map[string]string{}
	for _, name := range Names() {
		if text, err := data.ReadFile(code + "/" + name); err == nil {
			all[name] = string(text)
		}
	}
	return all
}

// header is package.yaml.
type header struct {
	Code, Version, Region string
	OrganizationWindow    bool `yaml:"organization_window"`
	Registry              bool
	RequireTimezone       bool          `yaml:"require_timezone"`
	StaleAfter            time.Duration `yaml:"stale_after"`
	Zones                 []string
	// Language is that of disclosures where a package has none in the call's.
	Language    string
	Disclosures map[string]Disclosure
}

func (h header) check() error {
	switch _, ok := h.Disclosures[h.Language]; {
	case !slices.Contains(Codes(), h.Code):
		return fmt.Errorf("code %q: use %s", h.Code, strings.Join(Codes(), " or "))
	case !strings.HasPrefix(h.Version, h.Code+"-") || len(h.Version) > 64:
		return fmt.Errorf("version %q: it begins with %s-", h.Version, h.Code)
	case len(h.Region) != 2:
		return fmt.Errorf("region %q: use two letters", h.Region)
	case !ok:
		return fmt.Errorf("language %q: there are no disclosures in it", h.Language)
	}
	for language, d := range h.Disclosures {
		if d.Caller == "" || d.Automated == "" || d.Recording == "" || d.OptOut == "" {
			return fmt.Errorf("disclosures.%s: caller, automated, recording and opt_out are all said", language)
		}
	}
	return nil
}

// Read makes a package of its files, by name, and says what is wrong with them.
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
		if err := table(t.file, text, t.row); err != nil {
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

// Disclosure returns what must be said in a language (BCP 47), or in the
// package's own where it does not know that one. A regional variant is its
// language.
func (p *Package) Disclosure(language string) Disclosure {
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	if d, ok := p.disclosures[base]; ok {
		return d
	}
	return p.disclosures[p.language]
}

// Areas lists the area codes of the country, in order; none where numbers do not
// tell where they are.
func (p *Package) Areas() []string { return slices.Sorted(maps.Keys(p.areas)) }
