package market

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// An area is where the numbers of an area code are.
type area struct {
	state string
	zones []string
	place Place // of all its numbers
}

func (p *Package) addArea(r row) error {
	code := r["areacode"]
	if len(code) != 3 || !digits(code) || p.areas[code].state != "" || len(r["state"]) != 2 {
		return fmt.Errorf("area code %q of %q: it is no code, there twice, or without a state", code, r["state"])
	}
	a := area{state: r["state"], zones: strings.Split(r["zones"], "|")}
	a.place = Place{States: []string{a.state}, Zones: slices.Compact(slices.Sorted(slices.Values(a.zones)))}
	for _, zone := range a.zones {
		if err := p.addLocation(zone); err != nil {
			return err
		}
	}
	p.areas[code] = a
	return nil
}

// A Refusal is why a number is not called in a market.
type Refusal string

// Refusals.
const (
	Callable           Refusal = ""
	CountryUnsupported Refusal = "phone_country_unsupported"
	TypeUnsupported    Refusal = "phone_type_unsupported" // toll-free, premium and the like
)

// A Number is a telephone number that was read.
type Number struct {
	E164    string // +12025550123
	Refusal Refusal
	// Doubtful tells that it follows the plan's form but is in no list of
	// numbers in service; lists lag.
	Doubtful bool
}

// ErrNumber tells that what was read is no telephone number.
var ErrNumber = errors.New("no telephone number")

// Read reads a number as people write it. One without a country code is of the
// market's own country. A number of another country is read, and refused.
func (p *Package) Read(raw string) (Number, error) {
	e164, known := p.plain(raw)
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

// parse reads a number in whatever form, and tells the country it lies in, empty
// where it is in no list of numbers in service.
func (p *Package) parse(raw string) (n Number, region string, err error) {
	parsed, err := phonenumbers.Parse(raw, p.Region)
	if err != nil || len(raw) > 64 {
		return Number{}, "", fmt.Errorf("%w: use digits with the country's code, like +12025550123", ErrNumber)
	}
	n.E164 = phonenumbers.Format(parsed, phonenumbers.E164)
	country := int(parsed.GetCountryCode())
	national := phonenumbers.GetNationalSignificantNumber(parsed)
	if country == 1 && !nanp(national) || country != 1 && !possible(parsed, n.E164) {
		return Number{}, "", fmt.Errorf("%w: %s has no number of that form", ErrNumber, n.E164)
	}
	region = phonenumbers.GetRegionCodeForNumber(parsed)
	n.Refusal, n.Doubtful = p.refusal(parsed, national, region), !phonenumbers.IsValidNumberForRegion(parsed, region)
	return n, region, nil
}

// possible tells whether a number has a length that its country knows, and is
// read the same again: zeros are taken off for trunk prefixes.
func possible(n *phonenumbers.PhoneNumber, e164 string) bool {
	again, err := phonenumbers.Parse(e164, "ZZ")
	return err == nil && phonenumbers.Format(again, phonenumbers.E164) == e164 && phonenumbers.IsPossibleNumber(n)
}

// nanp tells whether ten digits have the form of the North American plan, by
// NANPA's rules: neither part begins with 0 or 1 or is a code like 911.
func nanp(s string) bool {
	service := func(code string) bool { return code[1:] == "11" }
	return len(s) == 10 && s[0] >= '2' && s[3] >= '2' && !service(s[:3]) && !service(s[3:6])
}

func (p *Package) refusal(n *phonenumbers.PhoneNumber, national, region string) Refusal {
	if len(p.areas) > 0 { // the United States
		switch code := national[:min(3, len(national))]; {
		case n.GetCountryCode() != 1:
			return CountryUnsupported
		case tollFree(code):
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

// tollFree tells whether an area code stands for no place: toll-free, premium,
// personal (5XX) and carrier codes.
func tollFree(code string) bool {
	return slices.Contains([]string{
		"800", "833", "844", "855", "866", "877", "888", "900", "700", "710", "600", "622", "633", "644", "655", "677", "688",
		"500", "521", "522", "523", "524", "525", "526", "527", "528", "529", "533", "544", "566", "577", "588",
	}, code)
}

// A Place is where a called party may be. Places share their lists: nobody
// changes them.
type Place struct {
	States []string // those whose rules hold, sorted; empty where only the country's do
	Zones  []string // every zone in which it may be, sorted
}

// Ambiguous tells that a place has several zones: a call must be legal in each.
func (p Place) Ambiguous() bool { return len(p.Zones) > 1 }

// Locate tells where a number may be. A state and a zone that the client named
// are taken beside what the number says: both must allow a call. An unknown
// state or zone is an error.
func (p *Package) Locate(n Number, state, zone string) (Place, error) {
	var place Place
	if a := p.areas[strings.TrimPrefix(n.E164, "+1")[:min(3, len(strings.TrimPrefix(n.E164, "+1")))]]; a.state != "" {
		place = a.place
	} else {
		place.Zones = p.zones
	}
	if state == "" && zone == "" {
		return place, nil // shared by all of its numbers
	}
	place.States, place.Zones = slices.Clone(place.States), slices.Clone(place.Zones)
	if state != "" {
		state = strings.ToUpper(state)
		if !p.knows(state) {
			return Place{}, fmt.Errorf("%q is no state: use two letters, like NY", state)
		}
		place.States = append(place.States, state)
	}
	if zone != "" {
		if p.location(zone) == nil {
			return Place{}, fmt.Errorf("%q is no time zone: use a name like America/New_York", zone)
		}
		place.Zones = append(place.Zones, zone)
	}
	slices.Sort(place.States)
	slices.Sort(place.Zones)
	place.States, place.Zones = slices.Compact(place.States), slices.Compact(place.Zones)
	return place, nil
}

func (p *Package) knows(state string) bool {
	for _, a := range p.areas {
		if a.state == state {
			return true
		}
	}
	return false
}
