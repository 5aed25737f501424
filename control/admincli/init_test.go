package admincli

import (
	"bytes"
	"cmp"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/secretbox"
)

// TestInitFiles checks that the files are accepted, and that wrong answers are refused.
func TestInitFiles(t *testing.T) {
	ip := netip.MustParseAddr("198.51.100.7")
	for name, row := range map[string]struct {
		c    Init
		ip   netip.Addr
		want []string
		err  string
	}{
		"IP address": {
			Init{Market: "us", Public: "198.51.100.7", Carrier: "telnyx", Providers: "deepgram,openai,elevenlabs", Database: "built-in"},
			ip,
			[]string{"PARLEY_MEDIA_IP=198.51.100.7", "#PARLEY_DATABASE_URL", "PARLEY_ELEVENLABS_API_KEY=", "carrier: telnyx\n    username: change-me", "tts: {provider: elevenlabs}", `allowed_destinations: ["US"]`},
			"",
		},
		"host name": {
			Init{Market: "kz", Public: "calls.example.com", Carrier: "sip.example.kz:5070", Number: "+77011234567", Providers: "openai, deepgram", Database: "postgres://u:p@db/parley"},
			ip,
			[]string{"PARLEY_HTTP_ACME=on", "PARLEY_SEAL_KEY=", `"sip:sip.example.kz:5070"`, "asr: {provider: deepgram}, llm: {provider: openai}", "Asia/Almaty", `caller_numbers: ["+77011234567"]`, `allowed_destinations: ["7"]`},
			"",
		},
		"no address":       {Init{Market: "us", Public: "calls.example.com", Carrier: "twilio", Providers: "openai", Database: "built-in"}, netip.Addr{}, []string{"\nPARLEY_MEDIA_IP=change-me\n", "carrier: twilio\n    proxy: \"sip:change-me.pstn.twilio.com\"", `caller_numbers: ["change-me"]`}, ""},
		"other market":     {Init{Market: "de", Public: "198.51.100.7", Carrier: "telnyx", Providers: "openai", Database: "built-in"}, ip, nil, "--market"},
		"no model":         {Init{Market: "us", Public: "198.51.100.7", Carrier: "telnyx", Providers: "deepgram", Database: "built-in"}, ip, nil, "none of them has a model"},
		"unknown provider": {Init{Market: "us", Public: "198.51.100.7", Carrier: "telnyx", Providers: "open-ai", Database: "built-in"}, ip, nil, `"open-ai": accepted: deepgram`},
		"mistyped carrier": {Init{Market: "us", Public: "198.51.100.7", Carrier: "telnix", Providers: "openai", Database: "built-in"}, ip, nil, `did you mean telnyx?`},
		"carrier as URI":   {Init{Market: "us", Public: "198.51.100.7", Carrier: "sip:me@x", Providers: "openai", Database: "built-in"}, ip, nil, "--carrier"},
		"no host name":     {Init{Market: "us", Public: "https://x.example", Carrier: "telnyx", Providers: "openai", Database: "built-in"}, ip, nil, "--public"},
		"other number":     {Init{Market: "us", Public: "198.51.100.7", Carrier: "telnyx", Number: "(202) 555-0123", Providers: "openai", Database: "built-in"}, ip, nil, `--number "(202) 555-0123": accepted: a number with country code`},
		"other database":   {Init{Market: "us", Public: "198.51.100.7", Carrier: "telnyx", Providers: "openai", Database: "mysql://u:canary@h/d"}, ip, nil, "--database: accepted"},
	} {
		row.c.Number = cmp.Or(row.c.Number, control.Placeholder)
		spec, settings, err := row.c.files(row.ip, secretbox.Generate())
		if row.err != "" {
			if err == nil || !strings.Contains(err.Error(), row.err) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: %v, want %q", name, err, row.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range row.want {
			if !strings.Contains(spec+settings, want) {
				t.Errorf("%s: no %s in\n%s%s", name, want, spec, settings)
			}
		}
		if _, err = apply.Parse(strings.NewReader(spec)); err != nil {
			t.Errorf("%s: %v\n%s", name, err, spec)
		}
		file := filepath.Join(t.TempDir(), "parley.env")
		if err = os.WriteFile(file, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(file, nil)
		if !row.ip.IsValid() {
			if err == nil || !strings.Contains(err.Error(), `PARLEY_MEDIA_IP: "change-me" is not an address`) {
				t.Errorf("%s: without an address: %v", name, err)
			}
			continue
		}
		if err == nil {
			_, _, err = c.MediaAddrs()
		}
		if err == nil {
			_, err = c.HTTPTLS.Load(c.PublicURL)
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, settings)
		}
	}
}

// TestInit answers the questions, and checks that no file is overwritten.
func TestInit(t *testing.T) {
	dir := t.TempDir()
	var errs bytes.Buffer
	answer := func(c Init, ask bool, text string) error {
		c.Dir = dir
		return c.Run(t.Context(), &Console{In: strings.NewReader(text), Errs: &errs, Ask: ask})
	}
	if err := answer(Init{Market: "us", Carrier: "telnyx"}, false, ""); err == nil || err.Error() != "answers are missing: set --public, --providers, --database" {
		t.Errorf("without answers: %v", err)
	}
	if err := answer(Init{Market: "us"}, true, "\n"); err == nil || !strings.Contains(err.Error(), "set --public, --carrier") {
		t.Errorf("with empty answers: %v", err)
	}
	if err := answer(Init{Carrier: "telnyx"}, true, "kz\n198.51.100.7\n\n\n\n"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"parley.env: PARLEY_OPENAI_API_KEY\n", "parley.yaml: organizations[main].trunks[carrier].password\n", "caller_numbers[0]\n", "doctor -f "} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("no %q in the next steps:\n%s", want, &errs)
		}
	}
	for name, want := range map[string]string{specFile: "market: kz", settingsFile: "PARLEY_MEDIA_IP=198.51.100.7"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		info, fault := os.Stat(filepath.Join(dir, name))
		if err != nil || fault != nil || !strings.Contains(string(text), want) || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v\n%s", name, err, fault, text)
		}
	}
	if err := answer(Init{Carrier: "telnyx"}, true, "us\n198.51.100.8\n\n\n\n"); err == nil || !strings.Contains(err.Error(), "exists: move it") {
		t.Errorf("a second time: %v", err)
	}
}

// TestInitAsksForTheAddress checks a host name that has no address yet.
func TestInitAsksForTheAddress(t *testing.T) {
	for name, row := range map[string]struct {
		c    Init
		ask  bool
		text string
		want string // in the settings, or in the error
	}{
		"asked":        {Init{}, true, "198.51.100.7\n", "\nPARLEY_MEDIA_IP=198.51.100.7\n"},
		"flag":         {Init{IP: "198.51.100.8"}, false, "", "\nPARLEY_MEDIA_IP=198.51.100.8\n"},
		"not answered": {Init{}, true, "\n", "\nPARLEY_MEDIA_IP=change-me\n"},
		"no IP":        {Init{IP: "calls"}, false, "", `--ip "calls": accepted: an IP address`},
	} {
		c := row.c
		c.Market, c.Public, c.Carrier, c.Number, c.Providers, c.Database = "us", "calls.parley.invalid", "telnyx", "+12025550100", "openai", "built-in"
		c.Dir = t.TempDir()
		var errs bytes.Buffer
		err := c.Run(t.Context(), &Console{In: strings.NewReader(row.text), Errs: &errs, Ask: row.ask})
		text, _ := os.ReadFile(filepath.Join(c.Dir, settingsFile))
		if err != nil {
			text = []byte(err.Error())
		}
		if !strings.Contains(string(text), row.want) {
			t.Errorf("%s: no %q in\n%s", name, row.want, text)
		}
		if strings.Contains(row.want, "=change-me") && !strings.Contains(errs.String(), "parley.env: PARLEY_MEDIA_IP\n") {
			t.Errorf("%s: the next steps lack PARLEY_MEDIA_IP:\n%s", name, &errs)
		}
	}
}
