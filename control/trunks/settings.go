package trunks

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
)

// Settings are how calls go through a trunk, as an operator writes them. The
// zero value is what most carriers want.
type Settings struct {
	Backups          []string          `json:"backups,omitempty"` // proxies, tried in this order
	Realm            string            `json:"realm,omitempty"`
	Register         bool              `json:"register,omitempty"`
	Codecs           []string          `json:"codecs,omitempty"`     // the preferred first; none is all
	Encryption       string            `json:"encryption,omitempty"` // none or srtp
	DTMF             string            `json:"dtmf,omitempty"`       // events or inband
	AssertedIdentity bool              `json:"asserted_identity,omitempty"`
	Privacy          bool              `json:"privacy,omitempty"`
	Diversion        string            `json:"diversion,omitempty"`
	Headers          map[string]string `json:"headers,omitempty"`
	Attest           map[string]string `json:"attest,omitempty"` // A, B or C, by caller number

	Provider string             `json:"provider,omitempty"` // the carrier's name, for those who choose a route
	Rates    map[string]float64 `json:"rates,omitempty"`    // what a minute costs, by the first digits of the number
}

// Rate is what a minute to a number costs: that of the longest beginning which
// has a rate, 0 where none has.
func (s Settings) Rate(digits string) float64 {
	for n := len(digits); n >= 0; n-- {
		if rate, ok := s.Rates[digits[:n]]; ok {
			return rate
		}
	}
	return 0
}

// encryptions and keyWays are what an operator calls them.
//
//nolint:gochecknoglobals // read-only tables
var (
	encryptions = map[string]media.Encryption{"": media.Plain, "none": media.Plain, "srtp": media.Encrypted}
	keyWays     = map[string]media.KeyWay{"": media.Events, "events": media.Events, "inband": media.InBand}
)

// mostBackups bounds the proxies that a call may be offered to beside the first.
const mostBackups = 8

// check returns what is wrong with settings of a trunk with or without a
// username.
func (s Settings) check(username string) error {
	if len(s.Backups) > mostBackups {
		return fmt.Errorf("backups: %d proxies; at most %d are tried", len(s.Backups), mostBackups)
	}
	for i, b := range s.Backups {
		if !proxy.MatchString(b) {
			return fmt.Errorf(`backups[%d]: %q is no address like "sip:host:port;transport=udp"`, i, b)
		}
	}
	if s.Register && username == "" {
		return errors.New("register: a registration needs a username")
	}
	if err := s.checkCodecs(); err != nil {
		return err
	}
	if _, ok := encryptions[s.Encryption]; !ok {
		return fmt.Errorf("encryption: %q: use none or srtp", s.Encryption)
	}
	if _, ok := keyWays[s.DTMF]; !ok {
		return fmt.Errorf("dtmf: %q: use events or inband", s.DTMF)
	}
	if s.Diversion != "" && !number.MatchString(s.Diversion) {
		return fmt.Errorf("diversion: %q: use + and 3 to 15 digits", s.Diversion)
	}
	if err := plain("realm", s.Realm); err != nil {
		return err
	}
	if err := plain("provider", s.Provider); err != nil {
		return err
	}
	if err := s.checkRates(); err != nil {
		return err
	}
	return s.checkAttest()
}

// mostRate bounds what a minute costs, in the operator's money.
const mostRate = 1_000_000

func (s Settings) checkRates() error {
	for _, d := range slices.Sorted(maps.Keys(s.Rates)) {
		if d != "" && !digits.MatchString(d) {
			return fmt.Errorf("rates: %q: use the first digits of numbers, without +, or \"\" for all others", d)
		}
		if rate := s.Rates[d]; !(rate >= 0 && rate <= mostRate) { // NaN is neither
			return fmt.Errorf("rates: %q: a minute costs 0 to %d", d, mostRate)
		}
	}
	return nil
}

func (s Settings) checkAttest() error {
	before := map[string]string{}
	for _, n := range slices.Sorted(maps.Keys(s.Attest)) {
		if !number.MatchString(n) {
			return fmt.Errorf("attest: %q: use + and 3 to 15 digits", n)
		}
		if other, twice := before[control.Digits(n)]; twice {
			return fmt.Errorf("attest: %s and %s are the same number", other, n)
		}
		before[control.Digits(n)] = n
		if !slices.Contains(levels, s.Attest[n]) {
			return fmt.Errorf("attest: %s: %q: use %s", n, s.Attest[n], strings.Join(levels, ", "))
		}
	}
	return nil
}

func (s Settings) checkCodecs() error {
	for i, name := range s.Codecs {
		if _, ok := codec.ByName(strings.ToUpper(name)); !ok {
			return fmt.Errorf("codecs[%d]: %q: use %s", i, name, strings.Join(codecNames(), ", "))
		}
		if slices.ContainsFunc(s.Codecs[:i], func(o string) bool { return strings.EqualFold(o, name) }) {
			return fmt.Errorf("codecs[%d]: %q is there twice", i, name)
		}
	}
	return nil
}

func codecNames() []string {
	var names []string
	for _, c := range codec.All() {
		names = append(names, strings.ToLower(c.Name()))
	}
	return names
}

// plain refuses what would end a line of a message.
func plain(what, s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return fmt.Errorf("the %s holds a control character", what)
	}
	return nil
}

// Line is the trunk as calls go through it.
func (t Trunk) Line() media.Trunk {
	s := t.Settings
	line := media.Trunk{
		Proxy: t.Proxy, Backups: s.Backups, Username: t.Username, Password: t.Password,
		Realm: s.Realm, Register: s.Register, Encryption: encryptions[s.Encryption], Keys: keyWays[s.DTMF],
		Asserted: s.AssertedIdentity, Private: s.Privacy, Diversion: s.Diversion, Headers: s.Headers,
	}
	for _, name := range s.Codecs {
		line.Codecs = append(line.Codecs, strings.ToUpper(name))
	}
	return line
}
