package place

import (
	"slices"
	"strings"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/spelling"
)

// never lists the beginnings of international numbers that are not dialled,
// whatever a subgroup allows.
var never = []string{ //nolint:gochecknoglobals // read-only table
	"1900",                                     // NANP, premium rate
	"338",                                      // France, special rate
	"3469", "34803", "34806", "34807", "34905", // Spain, premium rate
	"39144", "39166", "39178", "39199", "39892", "39894", "39895", "39899", // Italy, premium rate
	"4190", "4390", "4393", // Switzerland and Austria, premium rate
	"449", "4487", "4470", // United Kingdom, premium rate and personal numbers
	"46900", "46939", "46944", // Sweden, premium rate
	"49900", "49137", // Germany, premium rate
	"6119",         // Australia, premium rate
	"7803", "7809", // Russia and Kazakhstan, premium rate
	"808",               // international shared cost
	"881", "882", "883", // satellite and international networks
	"979", // international premium rate
	"999", // reserved, for disaster relief
}

// shortest is the fewest digits of a number that is nobody's short code.
const shortest = 7

// longest is the most digits: 15 of E.164 and a code to dial abroad.
const longest = 20

// Destination checks the digits of a number against what is never dialled and
// against the beginnings that are allowed; without any, nothing is.
func Destination(digits string, allowed []string) error {
	if digits == "" || len(digits) > longest {
		return control.Refuse(control.CodeDestinationInvalid, "to_number holds no telephone number")
	}
	if forbidden(digits) {
		return control.Refuse(control.CodeDestinationNotAllowed, "emergency, short, premium-rate and satellite numbers are not dialled")
	}
	if !slices.ContainsFunc(allowed, func(p string) bool { return strings.HasPrefix(digits, p) }) {
		return control.Refuse(control.CodeDestinationNotAllowed, "the subgroup does not allow this destination")
	}
	return nil
}

func forbidden(digits string) bool {
	// Emergency numbers, N11 and short codes are short in every spelling.
	if len(digits) < shortest {
		return true
	}
	for _, d := range international(digits) {
		// Inmarsat and universal personal numbers; shorter ones are national
		// numbers of Kazakhstan and Russia behind their 8.
		if len(d) >= 12 && (strings.HasPrefix(d, "870") || strings.HasPrefix(d, "878")) {
			return true
		}
		if slices.ContainsFunc(never, func(p string) bool { return strings.HasPrefix(d, p) }) || premiumNANP(d) {
			return true
		}
	}
	return false
}

// international lists the international numbers that carriers may take the
// digits for. Ten digits are a number of the NANP: without a country code
// most of its area codes look like another country.
func international(digits string) []string {
	var all []string
	add := func(d string) {
		switch {
		case len(d) == 10:
			all = append(all, "1"+d)
			if strings.HasPrefix(d, "88") { // no area code, but the first digits of satellites
				all = append(all, d)
			}
		case len(d) == 11 && d[0] == '8':
			all = append(all, d, "7"+d[1:])
		default:
			all = append(all, d)
		}
	}
	add(digits)
	if rest, ok := spelling.Abroad(digits); ok {
		add(rest)
	}
	return all
}

// premiumNANP knows the 976 exchange, and codes that no subscriber has.
func premiumNANP(d string) bool {
	if len(d) != 11 || d[0] != '1' {
		return false
	}
	area, exchange := d[1:4], d[4:7]
	return exchange == "976" || area[1:] == "11" || exchange[1:] == "11"
}
