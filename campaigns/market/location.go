package market

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nyaruka/phonenumbers"

	"github.com/parley-voice/parley/control/phonenumber"
)

// An area is the location of an area code's numbers.
type area struct {
	state string
	zones []string
	place Location // location of all numbers with the area code
}

func (p *Package) addArea(r row) error {
	code := r["areacode"]
	if len(code) != 3 || !isDigits(code) || p.areas[code].state != "" || len(r["state"]) != 2 {
		return fmt.Errorf("area code %q of %q: the code is invalid or repeated, or has no state", code, r["state"])
	}
	a := area{state: r["state"], zones: strings.Split(r["zones"], "|")}
	a.place = Location{States: []string{a.state}, Zones: slices.Compact(slices.Sorted(slices.Values(a.zones)))}
	for _, zone := range a.zones {
		if err := p.addLocation(zone); err != nil {
			return err
		}
	}
	p.areas[code] = a
	return nil
}

// A Refusal is why a market does not call a number.
type Refusal string

// Refusals.
const (
	Callable           Refusal = ""
	CountryUnsupported Refusal = "phone_country_unsupported"
	TypeUnsupported    Refusal = "phone_type_unsupported" // toll-free, premium and similar numbers
)

// A Number is a parsed telephone number.
type Number struct {
	E164    string // such as +12025550123
	Refusal Refusal
	// Doubtful reports that the number has a valid form but is in no list of numbers in service.
	// Such lists may be out of date.
	Doubtful bool
}

// ErrNumber is returned for text that is not a telephone number.
var ErrNumber = errors.New("not a telephone number")

// Read parses a number in any usual form. Without a country code it belongs to the
// market's country. A foreign number is not an error: its Refusal is set.
func (p *Package) Read(raw string) (Number, error) {
	if at := phonenumber.Fraction(raw); at >= 0 {
		raw = raw[:at]
	}
	e164, known := p.parsePlain(raw)
	if known != nil {
		if v := verdict(known.Load()); v&read != 0 {
			return v.of(e164), nil
		}
	}
	n, region, err := p.parse(raw)
	if err == nil && known != nil && (region == p.Region || region == "") {
		known.Store(uint32(verdictOf(n)))
	}
	return n, err
}

// parse parses a number in any form and returns its country; empty if no list of numbers in service has it.
func (p *Package) parse(raw string) (n Number, region string, err error) {
	if _, extension := phonenumber.Base(raw); extension {
		return Number{}, "", fmt.Errorf("%w: %w", ErrNumber, phonenumber.ErrExtension)
	}
	parsed, err := phonenumbers.Parse(raw, p.Region)
	if err != nil || len(raw) > 64 {
		return Number{}, "", fmt.Errorf("%w: use digits with the country code, like +12025550123", ErrNumber)
	}
	if parsed.GetExtension() != "" {
		return Number{}, "", fmt.Errorf("%w: %w", ErrNumber, phonenumber.ErrExtension)
	}
	n.E164 = phonenumbers.Format(parsed, phonenumbers.E164)
	country := int(parsed.GetCountryCode())
	national := phonenumbers.GetNationalSignificantNumber(parsed)
	if country == 1 && !isNANP(national) || country != 1 && !isPossible(parsed, n.E164) {
		return Number{}, "", fmt.Errorf("%w: %s does not match its numbering plan", ErrNumber, n.E164)
	}
	region = phonenumbers.GetRegionCodeForNumber(parsed)
	n.Refusal, n.Doubtful = p.refusal(parsed, national, region), !phonenumbers.IsValidNumberForRegion(parsed, region)
	return n, region, nil
}

// isPossible reports whether a number has a valid length for its country, and its E.164 form parses as the same
// number. Some do not, because the parser removes leading zeros as trunk prefixes.
func isPossible(n *phonenumbers.PhoneNumber, e164 string) bool {
	parsed, err := phonenumbers.Parse(e164, "ZZ")
	return err == nil && phonenumbers.Format(parsed, phonenumbers.E164) == e164 && phonenumbers.IsPossibleNumber(n)
}

// isNANP reports whether ten digits have the form of the North American Numbering Plan by
// NANPA's rules: neither part begins with 0 or 1 or is a code like 911.
func isNANP(s string) bool {
	isService := func(code string) bool { return code[1:] == "11" }
	return len(s) == 10 && s[0] >= '2' && s[3] >= '2' && !isService(s[:3]) && !isService(s[3:6])
}

func (p *Package) refusal(n *phonenumbers.PhoneNumber, national, region string) Refusal {
	if len(p.areas) > 0 { // the United States
		switch code := national[:min(3, len(national))]; {
		case n.GetCountryCode() != 1:
			return CountryUnsupported
		case isTollFree(code):
			return TypeUnsupported
		case p.areas[code].state == "":
			return CountryUnsupported
		default:
			return Callable
		}
	}
	if region != p.Region {
		return CountryUnsupported
	}
	switch phonenumbers.GetNumberType(n) {
	case phonenumbers.FIXED_LINE, phonenumbers.MOBILE, phonenumbers.FIXED_LINE_OR_MOBILE, phonenumbers.VOIP, phonenumbers.PERSONAL_NUMBER:
		return Callable
	default:
		return TypeUnsupported
	}
}

// isTollFree reports whether an area code has no location: toll-free, premium, personal
// (5XX) and carrier codes.
func isTollFree(code string) bool {
	return slices.Contains([]string{
		"800", "833", "844", "855", "866", "877", "888", "900", "700", "710", "600", "622", "633", "644", "655", "677", "688",
		"500", "521", "522", "523", "524", "525", "526", "527", "528", "529", "533", "544", "566", "577", "588",
	}, code)
}

// A Location is where a callee may be. Locations share their slices: do not change
// them.
type Location struct {
	States []string // states with rules of their own, sorted; empty if only the rules of the country apply
	Zones  []string // all possible zones, sorted
}

// IsAmbiguous reports whether there are several zones. A call must be legal in each of them.
func (p Location) IsAmbiguous() bool { return len(p.Zones) > 1 }

// Locate returns the possible locations of a number. It adds the state and the zone that the client named, because
// all locations must allow a call. It returns an error for an unknown state or zone.
func (p *Package) Locate(n Number, state, zone string) (Location, error) {
	var place Location
	national := strings.TrimPrefix(n.E164, "+1")
	if a := p.areas[national[:min(3, len(national))]]; a.state != "" {
		place = a.place
	} else {
		place.Zones = p.zones
	}
	if state == "" && zone == "" {
		return place, nil // shared by all numbers of the area
	}
	place.States, place.Zones = slices.Clone(place.States), slices.Clone(place.Zones)
	if state != "" {
		state = strings.ToUpper(state)
		if !p.hasState(state) {
			return Location{}, fmt.Errorf("%q is not a state: use two letters, like NY", state)
		}
		place.States = append(place.States, state)
	}
	if zone != "" {
		if p.location(zone) == nil {
			return Location{}, fmt.Errorf("%q is not a time zone: use a name like America/New_York", zone)
		}
		place.Zones = append(place.Zones, zone)
	}
	slices.Sort(place.States)
	slices.Sort(place.Zones)
	place.States, place.Zones = slices.Compact(place.States), slices.Compact(place.Zones)
	return place, nil
}

func (p *Package) hasState(state string) bool {
	for _, a := range p.areas {
		if a.state == state {
			return true
		}
	}
	return false
}
