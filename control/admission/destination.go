package admission

import (
	"slices"
	"strings"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/phonenumber"
	"github.com/parley-voice/parley/control/trunks"
)

// blockedPrefixes are prefixes of international numbers that are never dialed, even if a subgroup allows them.
var blockedPrefixes = []string{ //nolint:gochecknoglobals // read-only table
	"1900",                                     // North America (NANP), premium rate
	"338",                                      // France, special rate
	"3469", "34803", "34806", "34807", "34905", // Spain, premium rate
	"39144", "39166", "39178", "39199", "39892", "39894", "39895", "39899", // Italy, premium rate
	"4190", "4390", "4393", // Switzerland and Austria, premium rate
	"449", "4487", "4470", // United Kingdom, premium rate and personal numbers
	"46900", "46939", "46944", // Sweden, premium rate
	"49900", "49137", // Germany, premium rate
	"6119",         // Australia, premium rate
	"7803", "7809", // Russia and Kazakhstan, premium rate
	"808",               // international shared-cost service
	"881", "882", "883", // satellite and international networks
	"979", // international premium-rate service
	"999", // reserved for disaster relief
}

// minDigits is the minimum length of a number. Shorter numbers are short codes.
const minDigits = 7

// maxDigits is the maximum length of a number: 15 digits (E.164) and an exit code.
const maxDigits = 20

// CheckDestination checks a number, as the client sent it, against the blocked and the allowed prefixes. If there are
// no allowed prefixes, it refuses every number. It also refuses numbers with an extension or of an impossible length.
func CheckDestination(number string, allowed []string) error {
	digits, fault := phonenumber.Dialable(number)
	if digits == "" || len(digits) > maxDigits {
		return control.Refuse(control.CodeDestinationInvalid, "to_number is not a phone number")
	}
	if forbidden(digits) {
		return control.Refuse(control.CodeDestinationNotAllowed, "emergency, short, premium-rate and satellite numbers cannot be dialed")
	}
	if fault != nil {
		return control.Refuse(control.CodeDestinationInvalid, "to_number: "+fault.Error())
	}
	if !slices.ContainsFunc(allowed, func(p string) bool { return trunks.Permits(p, digits) }) {
		return control.Refuse(control.CodeDestinationNotAllowed, "the subgroup does not allow this destination")
	}
	return nil
}

func forbidden(digits string) bool {
	// Emergency numbers, N11 codes and short codes are shorter than minDigits in every form.
	if len(digits) < minDigits {
		return true
	}
	for _, d := range international(digits) {
		// 870 is Inmarsat, and 878 is universal personal numbers. With fewer than 12 digits, these are national
		// numbers of Kazakhstan and Russia, which start with 8.
		if len(d) >= 12 && (strings.HasPrefix(d, "870") || strings.HasPrefix(d, "878")) {
			return true
		}
		if slices.ContainsFunc(blockedPrefixes, func(p string) bool { return strings.HasPrefix(d, p) }) || premiumNANP(d) {
			return true
		}
	}
	return false
}

// international returns all international numbers that a carrier may take the digits for. Ten digits always count as a
// NANP number, although most area codes look like the country code of another country.
func international(digits string) []string {
	var all []string
	add := func(d string) {
		switch {
		case len(d) == 10:
			all = append(all, "1"+d)
			if strings.HasPrefix(d, "88") { // 88 is no area code but may be a satellite prefix
				all = append(all, d)
			}
		case len(d) == 11 && d[0] == '8':
			all = append(all, d, "7"+d[1:])
		default:
			all = append(all, d)
		}
	}
	add(digits)
	if rest, ok := phonenumber.TrimExitCode(digits); ok {
		add(rest)
	}
	return all
}

// premiumNANP reports whether an 11-digit NANP number has the premium-rate exchange 976, or an N11 code as area code
// or exchange.
func premiumNANP(d string) bool {
	if len(d) != 11 || d[0] != '1' {
		return false
	}
	area, exchange := d[1:4], d[4:7]
	return exchange == "976" || area[1:] == "11" || exchange[1:] == "11"
}
