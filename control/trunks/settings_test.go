package trunks

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
)

func TestSettings(t *testing.T) {
	for name, row := range map[string]struct {
		s    Settings
		want string // expected part of the error; empty means no error
	}{
		"no setting":                      {Settings{}, ""},
		"a backup over TLS":               {Settings{Backups: []string{"sips:b.example"}}, ""},
		"not a SIP URI":                   {Settings{Backups: []string{"sip:a", "tel:1"}}, "backups[1]"},
		"too many backups":                {Settings{Backups: []string{"sip:1", "sip:2", "sip:3", "sip:4", "sip:5", "sip:6", "sip:7", "sip:8", "sip:9"}}, "at most 8"},
		"codecs of any case":              {Settings{Codecs: []string{"pcma", "G722"}}, ""},
		"an unknown codec":                {Settings{Codecs: []string{"pcmu", "g729"}}, "codecs[1]"},
		"a codec twice":                   {Settings{Codecs: []string{"pcmu", "PCMU"}}, "twice"},
		"unknown encryption":              {Settings{Encryption: "maybe"}, "use none or srtp"},
		"unknown DTMF":                    {Settings{DTMF: "smoke"}, "use events or inband"},
		"number format in words":          {Settings{NumberFormat: "words"}, "use digits or e164"},
		"diversion not a number":          {Settings{Diversion: "front desk"}, "diversion"},
		"a realm of two lines":            {Settings{Realm: "a\r\nb"}, "control character"},
		"unknown level":                   {Settings{Attest: map[string]string{"+12025550100": "full"}}, "use A, B, C"},
		"level of no number":              {Settings{Attest: map[string]string{"sales": "A"}}, "attest"},
		"a number twice":                  {Settings{Attest: map[string]string{"+12025550100": "A", "12025550100": "C"}}, "the same number"},
		"a number's level":                {Settings{Attest: map[string]string{"+12025550100": "C"}}, ""},
		"sources":                         {Settings{SignalingSources: []string{"203.0.113.0/24", "2001:db8::7", "::/0"}}, ""},
		"a source by host name":           {Settings{SignalingSources: []string{"203.0.113.7", "sip.example"}}, "signaling_sources[1]"},
		"prefix too long":                 {Settings{SignalingSources: []string{"203.0.113.0/33"}}, "signaling_sources[0]"},
		"too many sources":                {Settings{SignalingSources: make([]string, 33)}, "at most 32"},
		"media of a network":              {Settings{MediaSources: []string{"203.0.113.0/24", "198.51.100.7", "2001:db8::/32"}}, ""},
		"media of a host name":            {Settings{MediaSources: []string{"203.0.113.0/24", "sbc.example"}}, "media_sources[1]"},
		"too many media sources":          {Settings{MediaSources: slices.Repeat([]string{"203.0.113.7"}, 33)}, "at most 32"},
		"longest and shortest timeout":    {Settings{FirstMediaTimeout: 600, MediaTimeout: 5}, ""},
		"timeout too short":               {Settings{FirstMediaTimeout: 4}, "first_media_timeout_s: 4: use 5 to 600"},
		"timeout too long":                {Settings{MediaTimeout: 601}, "media_timeout_s: 601"},
		"registration without a username": {Settings{Register: true}, "needs a username"},
	} {
		err := Trunk{Proxy: "sip:a", Settings: row.s}.Check()
		if (err != nil) != (row.want != "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
	if err := (Trunk{Proxy: "sip:a", Username: "u", Settings: Settings{Register: true}}).Check(); err != nil {
		t.Error(err)
	}
}

func TestMediaTrunk(t *testing.T) {
	all := Trunk{Proxy: "sip:a", Username: "u", Password: "p", Settings: Settings{
		Backups: []string{"sip:b"}, Realm: "r", SignalingSources: []string{"203.0.113.7", "198.51.100.9/24"}, Register: true, Codecs: []string{"g722", "Pcmu"}, Encryption: "srtp", DTMF: "inband",
		NumberFormat: "e164", AssertedIdentity: true, Privacy: true, Diversion: "+12025550101", Headers: map[string]string{"X-A": "b"},
		MediaSources: []string{"203.0.113.9/24", "198.51.100.7"}, FirstMediaTimeout: 60, MediaTimeout: 90,
	}}
	want := media.Trunk{
		Proxy: "sip:a", Backups: []string{"sip:b"}, Username: "u", Password: "p", Realm: "r", Register: true,
		Sources: []netip.Prefix{netip.MustParsePrefix("203.0.113.7/32"), netip.MustParsePrefix("198.51.100.0/24")},
		Codecs:  []string{"G722", "PCMU"}, Encryption: media.Encrypted, Keys: media.InBand, Plus: true, Asserted: true, Private: true,
		Diversion: "+12025550101", Headers: map[string]string{"X-A": "b"},
		MediaSources: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("198.51.100.7/32")},
		FirstMedia:   time.Minute, MediaGap: 90 * time.Second,
	}
	if got := all.MediaTrunk(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for i := range reflect.TypeFor[media.Trunk]().NumField() { // a field without a value means that its setting has no effect
		if f := reflect.ValueOf(all.MediaTrunk()).Field(i); f.IsZero() {
			t.Errorf("no setting fills in %s", reflect.TypeFor[media.Trunk]().Field(i).Name)
		}
	}
	plain := Trunk{Proxy: "sip:a", Settings: Settings{Encryption: "none", DTMF: "events"}}
	if got := plain.MediaTrunk(); !reflect.DeepEqual(got, media.Trunk{Proxy: "sip:a"}) {
		t.Errorf("%+v", got)
	}
}
