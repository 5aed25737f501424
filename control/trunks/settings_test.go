package trunks

import (
	"reflect"
	"strings"
	"testing"

	"github.com/parley-voice/parley/media"
)

func TestSettings(t *testing.T) {
	for name, row := range map[string]struct {
		s    Settings
		want string // in the error; empty for none
	}{
		"nothing":             {Settings{}, ""},
		"a backup over TLS":   {Settings{Backups: []string{"sips:b.example"}}, ""},
		"a backup of nowhere": {Settings{Backups: []string{"sip:a", "tel:1"}}, "backups[1]"},
		"too many backups":    {Settings{Backups: []string{"sip:1", "sip:2", "sip:3", "sip:4", "sip:5", "sip:6", "sip:7", "sip:8", "sip:9"}}, "at most 8"},
		"codecs of any case":  {Settings{Codecs: []string{"pcma", "G722"}}, ""},
		"an unknown codec":    {Settings{Codecs: []string{"pcmu", "g729"}}, "codecs[1]"},
		"a codec twice":       {Settings{Codecs: []string{"pcmu", "PCMU"}}, "twice"},
		"half encrypted":      {Settings{Encryption: "maybe"}, "use none or srtp"},
		"keys in smoke":       {Settings{DTMF: "smoke"}, "use events or inband"},
		"diverted by a name":  {Settings{Diversion: "front desk"}, "diversion"},
		"a realm of lines":    {Settings{Realm: "a\r\nb"}, "control character"},
		"a level of no name":  {Settings{Attest: map[string]string{"+12025550100": "full"}}, "use A, B, C"},
		"a name's level":      {Settings{Attest: map[string]string{"sales": "A"}}, "attest"},
		"a number twice":      {Settings{Attest: map[string]string{"+12025550100": "A", "12025550100": "C"}}, "the same number"},
		"a number's level":    {Settings{Attest: map[string]string{"+12025550100": "C"}}, ""},
		"nobody registers":    {Settings{Register: true}, "needs a username"},
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

func TestLine(t *testing.T) {
	all := Trunk{Proxy: "sip:a", Username: "u", Password: "p", Settings: Settings{
		Backups: []string{"sip:b"}, Realm: "r", Register: true, Codecs: []string{"g722", "Pcmu"}, Encryption: "srtp", DTMF: "inband",
		AssertedIdentity: true, Privacy: true, Diversion: "+12025550101", Headers: map[string]string{"X-A": "b"},
	}}
	want := media.Trunk{
		Proxy: "sip:a", Backups: []string{"sip:b"}, Username: "u", Password: "p", Realm: "r", Register: true,
		Codecs: []string{"G722", "PCMU"}, Encryption: media.Encrypted, Keys: media.InBand, Asserted: true, Private: true,
		Diversion: "+12025550101", Headers: map[string]string{"X-A": "b"},
	}
	if got := all.Line(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for i := range reflect.TypeFor[media.Trunk]().NumField() { // a field that nobody fills in is a setting that does nothing
		if f := reflect.ValueOf(all.Line()).Field(i); f.IsZero() {
			t.Errorf("no setting fills in %s", reflect.TypeFor[media.Trunk]().Field(i).Name)
		}
	}
	plain := Trunk{Proxy: "sip:a", Settings: Settings{Encryption: "none", DTMF: "events"}}
	if got := plain.Line(); !reflect.DeepEqual(got, media.Trunk{Proxy: "sip:a"}) {
		t.Errorf("%+v", got)
	}
}
