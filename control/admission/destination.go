package admission

import (
	"slices"
	"strings"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/phonenumber"
	"github.com/parley-voice/parley/control/trunks"
)

// blockedPrefixes are prefixes of international numbers that are never dialed, regardless of the subgroup.
var blockedPrefixes = []string{ //nolint:gochecknoglobals // read-only table
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

// minDigits is the shortest number that is not a short code.
const minDigits = 7

// maxDigits is the longest number: 15 digits of E.164 and an exit code.
const maxDigits = 20

// CheckDestination checks a number, as sent, against the blocked prefixes and the allowed ones; without allowed
// prefixes every number is refused. Numbers with an extension or of an impossible length are refused.
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
	// Emergency numbers, N11 and short codes are short in every form.
	if len(digits) < minDigits {
		return true
	}
	for _, d := range international(digits) {
		// Inmarsat and universal personal numbers; shorter ones are national numbers of
		// Kazakhstan and Russia after their prefix 8.
		if len(d) >= 12 && (strings.HasPrefix(d, "870") || strings.HasPrefix(d, "878")) {
			return true
		}
		if slices.ContainsFunc(blockedPrefixes, func(p string) bool { return strings.HasPrefix(d, p) }) || premiumNANP(d) {
			return true
		}
	}
	return false
}

// international lists the international numbers that carriers may read the digits as. Ten
// digits are a NANP number: most of its area codes look like another country's code.
func international(digits string) []string {
	var all []string
	add := func(d string) {
		switch {
		case len(d) == 10:
			all = append(all, "1"+d)
			if strings.HasPrefix(d, "88") { // not an area code but a satellite prefix
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

// premiumNANP reports the exchange 976 and N11 codes.
func premiumNANP(d string) bool {
	if len(d) != 11 || d[0] != '1' {
		return false
	}
	area, exchange := d[1:4], d[4:7]
	return exchange == "976" || area[1:] == "11" || exchange[1:] == "11"
}
