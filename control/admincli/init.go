package admincli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/secretbox"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
)

// Console is the input and output of a command that asks questions.
type Console struct {
	In        io.Reader
	Out, Errs io.Writer
	Ask       bool // a person answers
}

// Init writes the first files of an installation.
type Init struct {
	Market    string `help:"Rules of the country that is called: us or kz." placeholder:"us|kz"`
	Public    string `help:"Address at which carriers and clients reach this machine: an IP address or a host name." placeholder:"ADDRESS"`
	IP        string `name:"ip" help:"Public IP address of this machine; only for a host name that has no address yet." placeholder:"IP"`
	Carrier   string `help:"A carrier profile (parley trunk profiles), or the SIP address of the carrier." placeholder:"NAME|ADDRESS"`
	Number    string `help:"Caller number that the carrier gave you, such as +12025550123; it may be entered later." placeholder:"NUMBER"`
	Providers string `help:"Providers of speech and models, comma-separated: deepgram, openai, elevenlabs, cartesia, assemblyai." placeholder:"NAME,…"`
	Database  string `help:"PostgreSQL URL, or built-in." placeholder:"URL|built-in"`
	Dir       string `help:"Folder for the files." default:"." placeholder:"DIR"`
}

// questions returns the questions, with the answers that an empty line gives.
func (c *Init) questions() []question {
	const providers = "Which providers (comma-separated): deepgram, openai, elevenlabs, cartesia, assemblyai?"
	return []question{
		{"market", &c.Market, "Which country do you call (us, kz)?", "us", false},
		{"public", &c.Public, "Public address of this machine, an IP address or a host name?", "", false},
		{"carrier", &c.Carrier, "Carrier: twilio, telnyx, another name from `parley trunk profiles`, or a SIP address?", "", false},
		{"number", &c.Number, "Caller number that the carrier gave you, such as +12025550123?", control.Placeholder, true},
		{"providers", &c.Providers, providers, "deepgram,openai,elevenlabs", false},
		{"database", &c.Database, "PostgreSQL URL, or built-in?", "built-in", false},
	}
}

type question struct {
	flag     string
	answer   *string
	text     string
	byEmpty  string
	optional bool // without a person, byEmpty is the answer
}

// Names of the files that Init writes.
const (
	specFile     = "parley.yaml"
	settingsFile = "parley.env"
)

// Run asks for what no flag gives, and writes the files. It overwrites no file.
func (c Init) Run(ctx context.Context, t *Console) error {
	in := bufio.NewReader(io.LimitReader(t.In, 64<<10))
	if err := c.ask(t, in, c.questions()); err != nil {
		return err
	}
	ip, err := c.findIP(ctx, t, in)
	if err != nil {
		return err
	}
	spec, settings, err := c.files(ip, secretbox.Generate())
	if err != nil {
		return err
	}
	for _, f := range []struct{ name, text string }{{specFile, spec}, {settingsFile, settings}} {
		name := filepath.Join(c.Dir, f.name)
		if err = writeNew(name, f.text); err != nil {
			return err
		}
		fmt.Fprintln(t.Errs, "wrote", name)
	}
	return c.printSteps(t.Errs, spec, settings)
}

// findIP returns the address of c.Public. If the name has none yet, it asks for it. The result may be invalid.
func (c *Init) findIP(ctx context.Context, t *Console, in *bufio.Reader) (netip.Addr, error) {
	if addrs, err := (&net.Resolver{}).LookupNetIP(ctx, "ip", c.Public); err == nil && len(addrs) > 0 && c.IP == "" {
		return addrs[0].Unmap(), nil
	}
	text := c.Public + " has no address in DNS yet. Public IP address of this machine?"
	if err := c.ask(t, in, []question{{"ip", &c.IP, text, control.Placeholder, true}}); err != nil || c.IP == control.Placeholder {
		return netip.Addr{}, err
	}
	ip, err := netip.ParseAddr(c.IP)
	if err != nil {
		return ip, fmt.Errorf("--ip %q: accepted: an IP address, such as 203.0.113.7", c.IP)
	}
	return ip, nil
}

// printSteps says what the operator does next.
func (c Init) printSteps(out io.Writer, spec, settings string) error {
	s, err := apply.Parse(strings.NewReader(spec))
	if err != nil {
		return err
	}
	var keys []string
	for line := range strings.Lines(settings) {
		if key, value, ok := strings.Cut(line, "="); ok && key[0] != '#' && control.HasPlaceholder(value) {
			keys = append(keys, key)
		}
	}
	env, file := filepath.Join(c.Dir, settingsFile), filepath.Join(c.Dir, specFile)
	fmt.Fprintf(out, "\nNext:\n  1. Replace each %s:\n", control.Placeholder)
	for _, list := range []struct {
		file  string
		paths []string
	}{{env, keys}, {file, apply.Placeholders(s)}} {
		for _, path := range list.paths {
			fmt.Fprintf(out, "       %s: %s\n", list.file, path)
		}
	}
	_, err = fmt.Fprintf(out, "  2. Check:            sudo %[3]s --config %[1]s doctor -f %[2]s\n"+
		"  3. Store the file:   sudo %[3]s --config %[1]s apply -f %[2]s\n  4. Start the server: sudo %[3]s --config %[1]s serve\n",
		env, file, os.Args[0])
	return err
}

// ask fills the missing answers.
func (c *Init) ask(t *Console, in *bufio.Reader, all []question) error {
	var missing []string
	for _, q := range all {
		switch {
		case *q.answer != "":
			continue
		case !t.Ask && q.optional:
			*q.answer = q.byEmpty
			continue
		case !t.Ask:
			missing = append(missing, "--"+q.flag)
			continue
		}
		shown := ""
		if q.byEmpty != "" {
			shown = "[" + q.byEmpty + "] "
		}
		fmt.Fprintf(t.Errs, "%s %s", q.text, shown)
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("failed to read the answer: %w", err)
		}
		if *q.answer = cmp.Or(strings.TrimSpace(line), q.byEmpty); *q.answer == "" {
			missing = append(missing, "--"+q.flag)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("answers are missing: set %s", strings.Join(missing, ", "))
	}
	return nil
}

// files returns the operator's file and the settings. ip is the address of c.Public, invalid if unknown. key encrypts
// secrets of a database that is not built in.
func (c Init) files(ip netip.Addr, key media.Secret) (spec, settings string, err error) {
	if c.Market != "us" && c.Market != "kz" {
		return "", "", fmt.Errorf("--market %q: accepted: us, kz", c.Market)
	}
	trunk, err := c.trunk()
	if err != nil {
		return "", "", err
	}
	names := strings.Split(strings.ReplaceAll(c.Providers, " ", ""), ",")
	engines, err := chooseEngines(names)
	if err != nil {
		return "", "", err
	}
	digits := strings.TrimPrefix(c.Number, "+")
	if isNumber := len(digits) > 6 && strings.Trim(digits, "0123456789") == ""; !isNumber && c.Number != control.Placeholder {
		return "", "", fmt.Errorf("--number %q: accepted: a number with country code, such as +12025550123", c.Number)
	}
	zone, destinations := "America/New_York", "US"
	if c.Market == "kz" {
		zone, destinations = "Asia/Almaty", "7"
	}
	settings, err = c.settings(ip, key, names)
	spec = fmt.Sprintf(specTemplate, zone, c.Market, engines["asr"], engines["llm"], engines["tts"], trunk, c.Number, destinations)
	return spec, settings, err
}

// trunk returns the keys of the trunk that depend on the carrier.
func (c Init) trunk() (string, error) {
	all, err := apply.AllCarriers()
	if err != nil {
		return "", err
	}
	const apart = "\n    "
	profile, err := all.Find(c.Carrier)
	if err == nil {
		return strings.Join(profile.YAML(), apart), nil
	}
	address := strings.TrimPrefix(c.Carrier, "sip:")
	if !strings.ContainsAny(address, ".:") || strings.ContainsAny(address, " \"'<>@\n") {
		return "", fmt.Errorf("--carrier %w, or an address like sip.example.com:5060", err)
	}
	return fmt.Sprintf("proxy: %q", "sip:"+address) + apart + strings.Join(apply.CredentialLines(true), apart), nil
}

// chooseEngines returns the first provider that serves each part of a conversation.
func chooseEngines(names []string) (map[string]string, error) {
	accepted := []string{"deepgram", "openai", "elevenlabs", "cartesia", "assemblyai"}
	engines := map[string]string{}
	for _, name := range names {
		if !slices.Contains(accepted, name) {
			return nil, fmt.Errorf("--providers %q: accepted: %s; docs/providers.md lists others", name, strings.Join(accepted, ", "))
		}
	}
	for _, part := range []struct{ serves, what string }{{"asr", "speech-to-text"}, {"llm", "a model"}, {"tts", "a voice"}} {
		// The last one wins: people name a provider of voices after one that serves everything.
		for _, name := range slices.Backward(names) {
			if slices.Contains(endpoints.Kinds()[name].Serves, part.serves) {
				engines[part.serves] = name
				break
			}
		}
		if engines[part.serves] == "" {
			return nil, fmt.Errorf("--providers %s: none of them has %s; openai has one", strings.Join(names, ","), part.what)
		}
	}
	if slices.Contains(names, "deepgram") {
		engines["asr"] = "deepgram"
	}
	return engines, nil
}

func (c Init) settings(ip netip.Addr, key media.Secret, names []string) (string, error) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Settings of parley serve: docs/configuration.md explains each. An environment variable wins over this file.")
	line("PARLEY_DATA_DIR=/var/lib/parley")
	line("\n# Phone calls: carriers send SIP and audio to PARLEY_MEDIA_IP.")
	line("PARLEY_SIP_ADDR=0.0.0.0:5060")
	if ip.IsValid() {
		line("PARLEY_MEDIA_IP=%s", ip)
	} else {
		line("# The name %s has no address yet. Enter the public IP address of this machine.\nPARLEY_MEDIA_IP=%s", c.Public, control.Placeholder)
	}
	if _, err := netip.ParseAddr(c.Public); err == nil {
		line("\n# The API and the dashboard, on this machine only. Put an HTTPS proxy in front, or set PARLEY_HTTP_ACME=on and a host name.")
		line("PARLEY_HTTP_ADDR=127.0.0.1:8080")
	} else {
		if strings.ContainsAny(c.Public, " /:@\n") || !strings.Contains(c.Public, ".") {
			return "", fmt.Errorf("--public %q: accepted: an IP address, or a host name like calls.example.com", c.Public)
		}
		line("\n# The API and the dashboard, with a certificate from Let's Encrypt. Port 443 of %s must lead here.", c.Public)
		line("PARLEY_PUBLIC_URL=https://%s\nPARLEY_HTTP_ADDR=0.0.0.0:443\nPARLEY_HTTP_ACME=on", c.Public)
	}
	if c.Database == "built-in" {
		line("\n# PostgreSQL runs in PARLEY_DATA_DIR. For several nodes, or a standby, use a server of your own:")
		line("#PARLEY_DATABASE_URL=postgres://parley:PASSWORD@localhost:5432/parley")
	} else {
		if !strings.HasPrefix(c.Database, "postgres://") && !strings.HasPrefix(c.Database, "postgresql://") {
			return "", errors.New("--database: accepted: built-in, or postgres://USER:PASSWORD@HOST:PORT/DATABASE")
		}
		line("\n# The seal key encrypts the secrets in the database. All nodes need the same key; keep a copy of it.")
		line("PARLEY_DATABASE_URL=%s\nPARLEY_SEAL_KEY=%s", c.Database, string(key))
	}
	line("\n# Keys of providers. Each may be in a file instead: PARLEY_…_API_KEY_FILE.")
	for _, name := range names {
		line("PARLEY_%s_API_KEY=%s", strings.ToUpper(name), control.Placeholder)
	}
	return b.String(), nil
}

// specTemplate is the operator's file.
const specTemplate = `# The operator's file: parley apply -f parley.yaml. docs/configuration.md and docs/agents.md explain each key.
organizations:
- name: main
  timezone: %s
  market: %s                        # the law of calling hours and do-not-call lists for campaigns
  agents:
  - name: assistant
    published: true
    # Say your own name and purpose before you call customers.
    greeting: "Hello, this is a test call of a voice agent. How are you today?"
    prompt: "You make test calls. Have a short, kind conversation, then say goodbye and end the call."
    tools: [{type: end_call}]
    voicemail: hangup               # hangup | leave_message | continue
    recording: true
    speech: {asr: {provider: %s}, llm: {provider: %s}, tts: {provider: %s}}
  trunks:
  - name: carrier
    %s
    caller_numbers: [%q]   # numbers that the carrier gave you, with country code
    subgroups:
    - {name: default, allowed_destinations: [%q], agents: [assistant], concurrent_calls: 5, calls_per_minute: 10}
`

// writeNew creates a file that only its owner may read. It fails if the file exists.
func writeNew(name, text string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the operator names the folder
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists: move it, or use --dir", name)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
