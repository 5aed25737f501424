package trunks

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
)

// Settings configure how calls use a trunk. The zero value fits most carriers.
type Settings struct {
	Backups          []string          `json:"backups,omitempty"` // proxies to try, in this order, if the first proxy fails
	Realm            string            `json:"realm,omitempty"`
	SignalingSources []string          `json:"signaling_sources,omitempty"` // networks that may send SIP, besides the proxies
	Register         bool              `json:"register,omitempty"`
	Codecs           []string          `json:"codecs,omitempty"`        // preferred codec first; empty means all
	Encryption       string            `json:"encryption,omitempty"`    // "none" or "srtp"
	DTMF             string            `json:"dtmf,omitempty"`          // "events" or "inband"
	NumberFormat     string            `json:"number_format,omitempty"` // "digits" or "e164"
	AssertedIdentity bool              `json:"asserted_identity,omitempty"`
	Privacy          bool              `json:"privacy,omitempty"`
	Diversion        string            `json:"diversion,omitempty"`
	Headers          map[string]string `json:"headers,omitempty"`
	Attest           map[string]string `json:"attest,omitempty"` // attestation level "A", "B" or "C" by caller number

	MediaSources []string `json:"media_sources,omitempty"` // networks from which media may come
	// FirstMediaTimeout is the timeout until the first media packet, and MediaTimeout is the timeout after it. Both are
	// in seconds; 0 means the default.
	FirstMediaTimeout int `json:"first_media_timeout_s,omitempty"`
	MediaTimeout      int `json:"media_timeout_s,omitempty"`

	Provider string             `json:"provider,omitempty"` // name of the carrier, for choosing routes
	Rates    map[string]float64 `json:"rates,omitempty"`    // cost per minute by number prefix
}

// Rate returns the cost per minute of a call to a number. It uses the longest prefix that matches. It returns nil if no
// prefix matches.
func (s Settings) Rate(digits string) *float64 {
	for n := len(digits); n >= 0; n-- {
		if rate, ok := s.Rates[digits[:n]]; ok {
			return &rate
		}
	}
	return nil
}

// encryptions and dtmfModes are the accepted values of Encryption and DTMF.
//
//nolint:gochecknoglobals // read-only tables
var (
	encryptions = map[string]media.Encryption{"": media.Plain, "none": media.Plain, "srtp": media.Encrypted}
	dtmfModes   = map[string]media.KeyMode{"": media.Events, "events": media.Events, "inband": media.InBand}
)

const maxBackups = 8

// numberE164 is the number format with a leading +.
const numberE164 = "e164"

// maxSources is the maximum number of networks in a list of sources.
const maxSources = 32

// network parses a network or a single address.
func network(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), true
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, false
	}
	a = a.Unmap()
	return netip.PrefixFrom(a, a.BitLen()), true
}

// networks parses a list that checkNetworks has accepted.
func networks(all []string) (read []netip.Prefix) {
	for _, text := range all {
		if p, ok := network(text); ok {
			read = append(read, p)
		}
	}
	return read
}

func checkNetworks(key string, all []string) error {
	if len(all) > maxSources {
		return fmt.Errorf("%s: %d networks; at most %d are accepted", key, len(all), maxSources)
	}
	for i, text := range all {
		if _, ok := network(text); !ok {
			return fmt.Errorf(`%s[%d]: %q: use a network or an address like "203.0.113.0/24" or "203.0.113.7"`, key, i, text)
		}
	}
	return nil
}

// check returns an error if the settings are invalid. username is the trunk's username, which may be empty.
func (s Settings) check(username string) error {
	if err := s.checkAddresses(); err != nil {
		return err
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
	if _, ok := dtmfModes[s.DTMF]; !ok {
		return fmt.Errorf("dtmf: %q: use events or inband", s.DTMF)
	}
	if !slices.Contains([]string{"", "digits", numberE164}, s.NumberFormat) {
		return fmt.Errorf("number_format: %q: use digits or e164", s.NumberFormat)
	}
	if s.Diversion != "" && !number.MatchString(s.Diversion) {
		return fmt.Errorf("diversion: %q: use + and 3 to 15 digits", s.Diversion)
	}
	if err := checkNoControl("realm", s.Realm); err != nil {
		return err
	}
	if err := checkNoControl("provider", s.Provider); err != nil {
		return err
	}
	if err := s.checkRates(); err != nil {
		return err
	}
	if err := s.checkMedia(); err != nil {
		return err
	}
	return s.checkAttest()
}

func (s Settings) checkAddresses() error {
	if len(s.Backups) > maxBackups {
		return fmt.Errorf("backups: %d proxies; at most %d are tried", len(s.Backups), maxBackups)
	}
	for i, b := range s.Backups {
		if !proxy.MatchString(b) {
			return fmt.Errorf(`backups[%d]: %q is not an address like "sip:host:port;transport=udp"`, i, b)
		}
	}
	return checkNetworks("signaling_sources", s.SignalingSources)
}

// Limits of the media timeouts.
const (
	minMediaTimeout = 5   // seconds
	maxMediaTimeout = 600 // seconds
)

func (s Settings) checkMedia() error {
	if err := checkNetworks("media_sources", s.MediaSources); err != nil {
		return err
	}
	for _, limit := range []struct {
		key     string
		seconds int
	}{{"first_media_timeout_s", s.FirstMediaTimeout}, {"media_timeout_s", s.MediaTimeout}} {
		if limit.seconds != 0 && (limit.seconds < minMediaTimeout || limit.seconds > maxMediaTimeout) {
			return fmt.Errorf("%s: %d: use %d to %d seconds, or 0 for the default", limit.key, limit.seconds, minMediaTimeout, maxMediaTimeout)
		}
	}
	return nil
}

// maxRate is the maximum cost of a minute, in currency units.
const maxRate = 1_000_000

func (s Settings) checkRates() error {
	for _, d := range slices.Sorted(maps.Keys(s.Rates)) {
		if d != "" && !digits.MatchString(d) {
			return fmt.Errorf("rates: %q: use the first digits of numbers, without +, or \"\" for all others", d)
		}
		if rate := s.Rates[d]; !(rate >= 0 && rate <= maxRate) { // the negated condition also rejects NaN
			return fmt.Errorf("rates: %q: accepted: 0 to %d for each minute", d, maxRate)
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
			return fmt.Errorf("codecs[%d]: %q is listed twice", i, name)
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

// checkNoControl rejects control characters, because a line break would start a new line of a SIP message.
func checkNoControl(what, s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return fmt.Errorf("the %s contains a control character", what)
	}
	return nil
}

// MediaTrunk returns the trunk in the form that calls use.
func (t Trunk) MediaTrunk() media.Trunk {
	s := t.Settings
	m := media.Trunk{
		Proxy: t.Proxy, Backups: s.Backups, Username: t.Username, Password: t.Password,
		Realm: s.Realm, Register: s.Register, Encryption: encryptions[s.Encryption], Keys: dtmfModes[s.DTMF],
		Plus: s.NumberFormat == numberE164, Asserted: s.AssertedIdentity, Private: s.Privacy, Diversion: s.Diversion, Headers: s.Headers,
	}
	for _, name := range s.Codecs {
		m.Codecs = append(m.Codecs, strings.ToUpper(name))
	}
	m.Sources, m.MediaSources = networks(s.SignalingSources), networks(s.MediaSources)
	m.FirstMedia, m.MediaGap = time.Duration(s.FirstMediaTimeout)*time.Second, time.Duration(s.MediaTimeout)*time.Second
	return m
}
